//! A sequence of things that have work: changing one makes another sequence, which shares all others and knows the sum.
//!
//! The sum is taken in one order, whatever was changed in which order; so equal sequences have equal sums to the bit.

use crate::tune::parts::Work;
use std::sync::Arc;

/// Children of a node.
const WIDTH: usize = 16;

/// What has work.
pub trait Weighs {
    /// Its work.
    fn work(&self) -> Work;
}

/// A sequence.
pub struct Sequence<T> {
    root: Arc<Node<T>>,
    /// How many elements a child of the root has.
    reach: usize,
}

enum Node<T> {
    Leaf(Vec<Arc<T>>, Work),
    Inner(Vec<Arc<Node<T>>>, Work),
}

impl<T> Clone for Sequence<T> {
    fn clone(&self) -> Sequence<T> {
        Sequence { root: self.root.clone(), reach: self.reach }
    }
}

impl<T> Node<T> {
    fn work(&self) -> &Work {
        match self {
            Node::Leaf(_, work) | Node::Inner(_, work) => work,
        }
    }
}

fn sum(each: impl Iterator<Item = Work>) -> Work {
    let mut out = Work::default();
    each.for_each(|w| out.0.iter_mut().zip(w.0).for_each(|(sum, n)| *sum += n));
    out
}

fn leaf<T: Weighs>(each: Vec<Arc<T>>) -> Node<T> {
    let work = sum(each.iter().map(|t| t.work()));
    Node::Leaf(each, work)
}

fn inner<T>(each: Vec<Arc<Node<T>>>) -> Node<T> {
    let work = sum(each.iter().map(|n| *n.work()));
    Node::Inner(each, work)
}

impl<T: Weighs> Sequence<T> {
    /// A sequence of some things.
    pub fn new(all: impl Iterator<Item = Arc<T>>) -> Sequence<T> {
        let all: Vec<Arc<T>> = all.collect();
        let mut level: Vec<Arc<Node<T>>> = all.chunks(WIDTH).map(|c| Arc::new(leaf(c.to_vec()))).collect();
        let mut reach = 1;
        while level.len() > 1 {
            level = level.chunks(WIDTH).map(|c| Arc::new(inner(c.to_vec()))).collect();
            reach *= WIDTH;
        }
        Sequence { root: level.pop().unwrap_or_else(|| Arc::new(leaf(vec![]))), reach }
    }

    /// The element at a place that there is.
    pub fn get(&self, at: usize) -> &Arc<T> {
        let (mut node, mut reach) = (&*self.root, self.reach);
        loop {
            match node {
                Node::Leaf(each, _) => return &each[at % WIDTH],
                Node::Inner(each, _) => node = &each[at / reach % WIDTH],
            }
            reach /= WIDTH;
        }
    }

    /// The sequence with another element at a place that there is.
    pub fn set(&mut self, at: usize, to: Arc<T>) {
        self.root = Arc::new(changed(&self.root, self.reach, at, to));
    }

    /// The work of all elements.
    pub fn work(&self) -> Work {
        *self.root.work()
    }
}

fn changed<T: Weighs>(node: &Node<T>, reach: usize, at: usize, to: Arc<T>) -> Node<T> {
    match node {
        Node::Leaf(each, _) => {
            let mut each = each.clone();
            each[at % WIDTH] = to;
            leaf(each)
        }
        Node::Inner(each, _) => {
            let (mut each, k) = (each.clone(), at / reach % WIDTH);
            each[k] = Arc::new(changed(&each[k], reach / WIDTH, at, to));
            inner(each)
        }
    }
}
