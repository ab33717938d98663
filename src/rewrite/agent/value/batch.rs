//! Graphs become one graph without edges between them, whose edges are sorted by what they are multiplied with.
//!
//! Edges of one kind that lead to the same node are a row: what they bring is added up before it is
//! multiplied, so there is one product for each row, and none for nodes that have no such edge.

use super::encode::Graph;
use super::vocabulary::{CHILDREN, EDGES};
use std::ops::Range;

/// Many graphs.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Where the nodes of each graph begin, and where those of the last one end.
    pub starts: Vec<usize>,
    /// The kind of each node.
    pub kinds: Vec<u16>,
    /// What the values of each node are made of.
    pub elements: Vec<u16>,
    /// Numbers for each node.
    pub features: Vec<f32>,
    /// The node that each row leads to. Rows are sorted by kind of edge, then by this.
    pub targets: Vec<u32>,
    /// Where the edges of each row begin, and where those of the last one end.
    pub rows: Vec<usize>,
    /// The node that each edge comes from.
    pub sources: Vec<u32>,
    /// How much each edge counts.
    pub weights: Vec<f32>,
    /// Where the rows of each kind of edge begin, and where those of the last one end.
    pub ranges: [usize; EDGES + 1],
}

impl Batch {
    /// Puts graphs together.
    pub fn of<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Batch {
        let mut out = Batch {
            starts: vec![0],
            kinds: vec![],
            elements: vec![],
            features: vec![],
            targets: vec![],
            rows: vec![],
            sources: vec![],
            weights: vec![],
            ranges: [0; EDGES + 1],
        };
        // What each edge leads to, by its kind and direction.
        let mut edges: Vec<(u16, u32, u32, f32)> = vec![];
        for graph in graphs {
            let first = out.kinds.len() as u32;
            out.kinds.extend(&graph.kinds);
            out.elements.extend(&graph.elements);
            out.features.extend(&graph.features);
            out.starts.push(out.kinds.len());
            for e in &graph.edges {
                let (parent, child) = (first + e.parent, first + e.child);
                edges.push((e.kind, parent, child, e.weight));
                edges.push((CHILDREN as u16 + e.kind, child, parent, e.weight));
            }
        }
        edges.sort_by_key(|(kind, target, source, _)| (*kind, *target, *source));
        let mut last = None;
        for (kind, target, source, weight) in edges {
            if last != Some((kind, target)) {
                out.rows.push(out.sources.len());
                out.targets.push(target);
                out.ranges[usize::from(kind) + 1] = out.targets.len();
                last = Some((kind, target));
            }
            out.sources.push(source);
            out.weights.push(weight);
        }
        out.rows.push(out.sources.len());
        for k in 1..out.ranges.len() {
            out.ranges[k] = out.ranges[k].max(out.ranges[k - 1]);
        }
        out
    }

    /// How many graphs there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of a kind of edge.
    pub fn range(&self, kind: usize) -> Range<usize> {
        self.ranges[kind]..self.ranges[kind + 1]
    }
}
