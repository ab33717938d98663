//! The programs of the suite `autoschedule`, their sizes, and the schedules by hand that stand beside them.

/// A definition at sizes.
pub struct Case {
    /// The file of its program, and the text.
    pub program: (&'static str, &'static str),
    /// The definition.
    pub def: &'static str,
    /// Its sizes.
    pub sizes: &'static [(&'static str, u64)],
    /// The schedule by hand, where there is one.
    pub hand: Option<&'static str>,
}

/// A picture of the size that the published studies have.
const PICTURE: &[(&str, u64)] = &[("h", 1536), ("w", 2560), ("channels", 3)];
const GRAY: &[(&str, u64)] = &[("h", 1536), ("w", 2560)];

const TOY: (&str, &str) = ("programs/imaging/toy.ks", include_str!("../../../../programs/imaging/toy.ks"));

/// All of them.
pub const CASES: [Case; 7] = [
    Case { program: TOY, def: "corner_sums", sizes: &[("h", 2048), ("w", 2048)], hand: None },
    Case { program: TOY, def: "row_sums", sizes: &[("h", 2048), ("w", 2052)], hand: None },
    Case {
        program: ("programs/imaging/blur.ks", include_str!("../../../../programs/imaging/blur.ks")),
        def: "blur",
        sizes: GRAY,
        hand: Some(include_str!("../../../../programs/imaging/blur.sched")),
    },
    Case {
        program: ("programs/imaging/harris.ks", include_str!("../../../../programs/imaging/harris.ks")),
        def: "harris",
        sizes: PICTURE,
        hand: Some(include_str!("../../../../programs/imaging/harris.sched")),
    },
    Case {
        program: ("programs/imaging/unsharp.ks", include_str!("../../../../programs/imaging/unsharp.ks")),
        def: "unsharp",
        sizes: PICTURE,
        hand: Some(include_str!("../../../../programs/imaging/unsharp.sched")),
    },
    Case {
        program: ("programs/imaging/stencil_chain.ks", include_str!("../../../../programs/imaging/stencil_chain.ks")),
        def: "chain_of_four",
        sizes: GRAY,
        hand: None,
    },
    Case {
        program: ("programs/imaging/iir_blur.ks", include_str!("../../../../programs/imaging/iir_blur.ks")),
        def: "iir_blur",
        sizes: PICTURE,
        hand: Some(include_str!("../../../../programs/imaging/iir_blur.sched")),
    },
];
