//! Which plugin to start and which to stop next: a pure function of the graph of needs (RUN-2).
//!
//! The kernel asks after every change, does what it is told, and reports the change of phase. No
//! order of these reports can break the rules: a plugin starts only while everything it needs is
//! there, and stops only after everybody who needs it has stopped.

use std::collections::{BTreeMap, BTreeSet};

/// Where one mounted plugin stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not running: a need is missing, or its turn has not come.
    Waiting,
    /// Its start runs.
    Starting,
    /// Running.
    Started,
    /// Its effects are being undone, after a run or after a start that failed.
    Stopping,
    /// Its start failed, and everything was undone. It is not tried again.
    Failed,
}

impl Phase {
    /// Whether anything of the plugin may be in place.
    const fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Started | Self::Stopping)
    }
}

/// One mounted plugin, as far as planning goes.
#[derive(Clone, Debug)]
pub(crate) struct Node<K> {
    pub(crate) needs: Vec<K>,
    pub(crate) provides: Vec<K>,
    pub(crate) phase: Phase,
    /// False once its unloading was asked for.
    pub(crate) wanted: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<I> {
    /// Start it.
    Start(I),
    /// Give its context's cancellation; its start then ends, and it is stopped. May be told again.
    CancelStart(I),
    /// Undo its effects.
    Stop(I),
}

/// The steps that are possible now. They are independent of one another.
pub(crate) fn plan<I: Copy + Ord, K: Ord>(nodes: &BTreeMap<I, Node<K>>) -> Vec<Step<I>> {
    let keep = supported(nodes, |node| node.phase == Phase::Started);
    let mut needed = BTreeSet::new();
    let mut held: BTreeMap<&K, usize> = BTreeMap::new();
    for node in nodes.values().filter(|node| node.phase.is_active()) {
        needed.extend(&node.needs);
        for key in &node.provides {
            *held.entry(key).or_default() += 1;
        }
    }
    let mut steps = Vec::new();
    for (&id, node) in nodes {
        match (node.phase, keep.contains(&id)) {
            // A predecessor that provides the same service is to be gone first.
            (Phase::Waiting, true) if !node.provides.iter().any(|key| held.contains_key(key)) => {
                for key in &node.provides {
                    *held.entry(key).or_default() += 1;
                }
                steps.push(Step::Start(id));
            }
            (Phase::Starting, false) => steps.push(Step::CancelStart(id)),
            (Phase::Started, false) if !node.provides.iter().any(|key| needed.contains(key)) => {
                steps.push(Step::Stop(id));
            }
            _ => {}
        }
    }
    steps
}

/// Those that run or will run without a further mount, if no start fails.
pub(crate) fn prospects<I: Copy + Ord, K: Ord>(nodes: &BTreeMap<I, Node<K>>) -> BTreeSet<I> {
    supported(nodes, |_| true)
}

/// The wanted nodes whose needs are provided by wanted nodes that satisfy `counts`, and so on down
/// to nodes without needs. Those that need one another in a circle are not among them.
fn supported<I: Copy + Ord, K: Ord>(
    nodes: &BTreeMap<I, Node<K>>,
    counts: impl Fn(&Node<K>) -> bool,
) -> BTreeSet<I> {
    let mut found = BTreeSet::new();
    let mut available = BTreeSet::new();
    loop {
        let before = found.len();
        for (&id, node) in nodes {
            if node.wanted
                && node.phase != Phase::Failed
                && !found.contains(&id)
                && node.needs.iter().all(|key| available.contains(key))
            {
                found.insert(id);
                if counts(node) {
                    available.extend(&node.provides);
                }
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(needs: &[u8], provides: &[u8], phase: Phase) -> Node<u8> {
        Node {
            needs: needs.to_vec(),
            provides: provides.to_vec(),
            phase,
            wanted: true,
        }
    }

    fn graph(nodes: Vec<Node<u8>>) -> BTreeMap<usize, Node<u8>> {
        nodes.into_iter().enumerate().collect()
    }

    /// RUN-2.
    #[test]
    fn a_plugin_waits_until_everything_it_needs_has_started() {
        let mut nodes = graph(vec![
            node(&[1, 2], &[], Phase::Waiting),
            node(&[], &[1], Phase::Started),
            node(&[], &[2], Phase::Starting),
        ]);
        assert_eq!(plan(&nodes), []);
        nodes.get_mut(&2).unwrap().phase = Phase::Started;
        assert_eq!(plan(&nodes), [Step::Start(0)]);
    }

    /// RUN-2.
    #[test]
    fn dependents_stop_first_and_are_awaited() {
        let mut nodes = graph(vec![
            node(&[], &[1], Phase::Started),
            node(&[1], &[2], Phase::Started),
            node(&[2], &[], Phase::Started),
        ]);
        nodes.get_mut(&0).unwrap().wanted = false;
        assert_eq!(plan(&nodes), [Step::Stop(2)]);
        nodes.get_mut(&2).unwrap().phase = Phase::Stopping;
        assert_eq!(plan(&nodes), []);
        nodes.get_mut(&2).unwrap().phase = Phase::Waiting;
        assert_eq!(plan(&nodes), [Step::Stop(1)]);
        nodes.get_mut(&1).unwrap().phase = Phase::Waiting;
        assert_eq!(plan(&nodes), [Step::Stop(0)]);
    }

    /// CFG-6.
    #[test]
    fn a_start_under_way_is_cancelled_when_a_need_goes() {
        let mut nodes = graph(vec![
            node(&[], &[1], Phase::Started),
            node(&[1], &[], Phase::Starting),
        ]);
        nodes.get_mut(&0).unwrap().wanted = false;
        assert_eq!(plan(&nodes), [Step::CancelStart(1)]);
    }

    #[test]
    fn a_successor_waits_until_its_predecessor_is_gone() {
        let mut nodes = graph(vec![
            node(&[], &[1], Phase::Stopping),
            node(&[], &[1], Phase::Waiting),
        ]);
        nodes.get_mut(&0).unwrap().wanted = false;
        assert_eq!(plan(&nodes), []);
        nodes.remove(&0);
        assert_eq!(plan(&nodes), [Step::Start(1)]);
    }

    #[test]
    fn a_circle_of_needs_has_no_prospects() {
        let nodes = graph(vec![
            node(&[1], &[2], Phase::Waiting),
            node(&[2], &[1], Phase::Waiting),
            node(&[3], &[], Phase::Waiting),
            node(&[], &[3], Phase::Waiting),
        ]);
        assert_eq!(prospects(&nodes), BTreeSet::from([2, 3]));
    }

    /// What the world does to a graph.
    #[derive(Clone, Debug)]
    enum Move {
        Mount { needs: Vec<u8>, provides: Vec<u8> },
        Unmount(usize),
        Finish { which: usize, ok: bool },
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let keys = || proptest::collection::vec(0u8..5, 0..3);
        let one = prop_oneof![
            3 => (keys(), keys()).prop_map(|(needs, provides)| Move::Mount { needs, provides }),
            1 => (0usize..64).prop_map(Move::Unmount),
            4 => (0usize..64, proptest::bool::weighted(0.9))
                .prop_map(|(which, ok)| Move::Finish { which, ok }),
        ];
        proptest::collection::vec(one, 0..60)
    }

    /// The kernel's bookkeeping without its tasks; asserts the rules at every step.
    #[derive(Default)]
    struct Model {
        nodes: BTreeMap<usize, Node<u8>>,
        next: usize,
        cancelled: BTreeSet<usize>,
    }

    impl Model {
        fn do_steps(&mut self) {
            self.nodes
                .retain(|_, node| node.wanted || node.phase.is_active());
            for step in plan(&self.nodes) {
                match step {
                    Step::Start(id) => {
                        let node = &self.nodes[&id];
                        assert!(node.wanted && node.phase == Phase::Waiting);
                        assert!(node.needs.iter().all(|key| self.running_provider(*key)));
                        assert!(node.provides.iter().all(|key| !self.active_provider(*key)));
                        self.nodes.get_mut(&id).unwrap().phase = Phase::Starting;
                    }
                    Step::CancelStart(id) => {
                        assert_eq!(self.nodes[&id].phase, Phase::Starting);
                        self.cancelled.insert(id);
                    }
                    Step::Stop(id) => {
                        assert_eq!(self.nodes[&id].phase, Phase::Started);
                        for key in &self.nodes[&id].provides {
                            assert!(
                                !self
                                    .nodes
                                    .values()
                                    .any(|other| other.phase.is_active()
                                        && other.needs.contains(key)),
                                "stopped before a dependent"
                            );
                        }
                        self.nodes.get_mut(&id).unwrap().phase = Phase::Stopping;
                    }
                }
            }
            for node in self.nodes.values().filter(|node| node.phase.is_active()) {
                assert!(
                    node.needs.iter().all(|key| self.running_provider(*key)),
                    "runs without a need"
                );
            }
        }

        fn running_provider(&self, key: u8) -> bool {
            self.nodes
                .values()
                .any(|node| node.phase == Phase::Started && node.provides.contains(&key))
        }

        fn active_provider(&self, key: u8) -> bool {
            self.nodes
                .values()
                .any(|node| node.phase.is_active() && node.provides.contains(&key))
        }

        fn finish(&mut self, id: usize, ok: bool) {
            let cancelled = self.cancelled.remove(&id);
            let node = self.nodes.get_mut(&id).unwrap();
            node.phase = match node.phase {
                Phase::Starting if cancelled => Phase::Waiting,
                Phase::Starting if ok => Phase::Started,
                Phase::Starting => Phase::Failed,
                Phase::Stopping => Phase::Waiting,
                other => other,
            };
        }

        fn busy(&self) -> Vec<usize> {
            self.nodes
                .iter()
                .filter(|(_, node)| matches!(node.phase, Phase::Starting | Phase::Stopping))
                .map(|(id, _)| *id)
                .collect()
        }
    }

    proptest! {
        /// RUN-2: whatever is mounted, unmounted and finished in whatever order, nobody runs
        /// without a need or is stopped before a dependent; left alone, everything that can run
        /// does, and what is not wanted is gone.
        #[test]
        fn no_order_of_events_breaks_the_rules(moves in moves()) {
            let mut model = Model::default();
            for one in moves {
                match one {
                    Move::Mount { needs, provides } => {
                        let taken = |key: &u8| model.nodes.values()
                            .any(|node| node.wanted && node.provides.contains(key));
                        if !provides.iter().any(taken) {
                            model.nodes.insert(model.next, node(&needs, &provides, Phase::Waiting));
                            model.next += 1;
                        }
                    }
                    Move::Unmount(which) => {
                        let ids: Vec<_> = model.nodes.keys().copied().collect();
                        if let Some(id) = ids.get(which % ids.len().max(1)) {
                            model.nodes.get_mut(id).unwrap().wanted = false;
                        }
                    }
                    Move::Finish { which, ok } => {
                        let busy = model.busy();
                        if let Some(id) = busy.get(which % busy.len().max(1)) {
                            model.finish(*id, ok);
                        }
                    }
                }
                model.do_steps();
            }
            let mut rounds = 0;
            while let Some(id) = model.busy().first().copied() {
                model.finish(id, true);
                model.do_steps();
                rounds += 1;
                prop_assert!(rounds < 1000, "never comes to rest");
            }
            let expected = prospects(&model.nodes);
            for (id, node) in &model.nodes {
                prop_assert!(node.wanted, "an unwanted plugin is still there");
                let running = node.phase == Phase::Started;
                prop_assert_eq!(running, expected.contains(id), "{} {:?}", id, node);
            }
        }
    }
}
