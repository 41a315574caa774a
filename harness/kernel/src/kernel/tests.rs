//! The kernel with plugins made up on the spot.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::*;
use crate::{CancelReason, Context, Event};

type Body =
    Box<dyn for<'a> Fn(&'a Context) -> BoxFuture<'a, Result<(), PluginError>> + Send + Sync>;

/// A plugin made of a closure.
struct Fake {
    name: &'static str,
    needs: Vec<ServiceKey>,
    provides: Vec<ServiceKey>,
    body: Body,
}

#[async_trait]
impl Plugin for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn needs(&self) -> Vec<ServiceKey> {
        self.needs.clone()
    }

    fn provides(&self) -> Vec<ServiceKey> {
        self.provides.clone()
    }

    async fn start(&self, ctx: &Context) -> Result<(), PluginError> {
        (self.body)(ctx).await
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        lock(&self.0).push(line.into());
    }

    #[track_caller]
    fn expect(&self, lines: &[&str]) {
        assert_eq!(*lock(&self.0), lines);
    }

    fn undo(&self, line: &'static str) -> impl FnOnce() + Send + 'static {
        let log = self.clone();
        move || log.add(line)
    }
}

struct One;
struct Two;

/// A plugin that logs its start and its undoing, and provides `One` and `Two` as it says.
fn logging(
    name: &'static str,
    log: &Log,
    needs: Vec<ServiceKey>,
    provides: Vec<ServiceKey>,
) -> Arc<Fake> {
    let (log, promised) = (log.clone(), provides.clone());
    let body: Body = Box::new(move |ctx| {
        let (log, promised) = (log.clone(), promised.clone());
        async move {
            log.add(format!("+{name}"));
            ctx.effect("log", move || log.add(format!("-{name}")));
            if promised.contains(&key::<One>()) {
                ctx.provide(Arc::new(One))?;
            }
            if promised.contains(&key::<Two>()) {
                ctx.provide(Arc::new(Two))?;
            }
            Ok(())
        }
        .boxed()
    });
    Arc::new(Fake {
        name,
        needs,
        provides,
        body,
    })
}

fn plugin(
    name: &'static str,
    body: impl for<'a> Fn(&'a Context) -> BoxFuture<'a, Result<(), PluginError>> + Send + Sync + 'static,
) -> Arc<Fake> {
    Arc::new(Fake {
        name,
        needs: vec![],
        provides: vec![],
        body: Box::new(body),
    })
}

fn key<S: 'static>() -> ServiceKey {
    ServiceKey::of::<S>()
}

/// A plugin whose start reports that it runs, and then waits: for its cancellation, or for ever.
fn slow(log: &Log, deaf: bool) -> (Arc<Fake>, oneshot::Receiver<()>, Arc<Notify>) {
    let (started, running) = oneshot::channel();
    let (started, log) = (Mutex::new(Some(started)), log.clone());
    let release = Arc::new(Notify::new());
    let gate = Arc::clone(&release);
    let fake = plugin("slow", move |ctx| {
        let (log, gate) = (log.clone(), Arc::clone(&gate));
        let started = lock(&started).take();
        async move {
            ctx.effect("log", log.undo("undone"));
            if let Some(started) = started {
                let _ = started.send(());
            }
            let reason = ctx.cancel().cancelled().await;
            assert_eq!(reason, CancelReason::Disposed);
            if deaf {
                gate.notified().await;
            }
            log.add("start ended");
            Err(PluginError::new("given up"))
        }
        .boxed()
    });
    (fake, running, release)
}

/// RUN-1.
#[tokio::test]
async fn everything_registered_is_undone_in_reverse_order_at_unload() {
    let log = Log::default();
    let sink = log.clone();
    let kernel = Kernel::new();
    let handle = kernel
        .mount(plugin("p", move |ctx| {
            let log = sink.clone();
            async move {
                ctx.effect("first", log.undo("first"));
                let slow = log.clone();
                ctx.effect_async("second", move || {
                    async move {
                        tokio::task::yield_now().await;
                        slow.add("second");
                        Ok(())
                    }
                    .boxed()
                });
                ctx.effect("third", log.undo("third"));
                Ok(())
            }
            .boxed()
        }))
        .await
        .unwrap();
    assert_eq!(kernel.state(&handle), PluginState::Started);
    log.expect(&[]);
    kernel.unmount(&handle).await.unwrap();
    log.expect(&["third", "second", "first"]);
    assert_eq!(kernel.state(&handle), PluginState::Stopped);
    kernel.unmount(&handle).await.unwrap();
    log.expect(&["third", "second", "first"]);
}

/// RUN-1: a set-up that fails half-way.
#[tokio::test]
async fn a_start_that_fails_half_way_is_undone_before_its_error_is_told() {
    let log = Log::default();
    let sink = log.clone();
    let kernel = Kernel::new();
    let provider = Fake {
        name: "p",
        needs: vec![],
        provides: vec![key::<One>()],
        body: Box::new(move |ctx| {
            let log = sink.clone();
            async move {
                ctx.effect("first", log.undo("first"));
                ctx.provide(Arc::new(One))?;
                ctx.effect("second", log.undo("second"));
                Err(PluginError::with_code("X", "no luck"))
            }
            .boxed()
        }),
    };
    let error = kernel.mount(Arc::new(provider)).await.unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Some("X"), "no luck")
    );
    log.expect(&["second", "first"]);
    assert!(kernel.service::<One>().is_none());
    kernel
        .mount(logging("again", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    assert!(kernel.service::<One>().is_some());
}

/// RUN-1.
#[tokio::test]
async fn a_start_that_panics_is_undone_and_reported_as_a_failure() {
    let log = Log::default();
    let sink = log.clone();
    let kernel = Kernel::new();
    let error = kernel
        .mount(plugin("p", move |ctx| {
            let log = sink.clone();
            async move {
                ctx.effect("first", log.undo("first"));
                panic!("number {}", 7)
            }
            .boxed()
        }))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("PLUGIN_PANICKED"));
    assert_eq!(
        error.to_string(),
        "plugin p panicked in its start: number 7"
    );
    log.expect(&["first"]);
    kernel.dispose().await.unwrap();
}

/// RUN-1, DIS-5.
#[tokio::test]
async fn an_undo_step_that_fails_or_panics_holds_up_nothing_and_is_reported() {
    let log = Log::default();
    let sink = log.clone();
    let kernel = Kernel::new();
    let handle = kernel
        .mount(plugin("p", move |ctx| {
            let log = sink.clone();
            async move {
                ctx.effect("first", log.undo("first"));
                ctx.effect("panics", || panic!("stuck"));
                ctx.effect_async("fails", || {
                    async { Err(PluginError::new("refused")) }.boxed()
                });
                Ok(())
            }
            .boxed()
        }))
        .await
        .unwrap();
    let errors = kernel.unmount(&handle).await.unwrap_err();
    let told: Vec<_> = errors.failures().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "plugin p: undoing fails: refused",
            "plugin p: undoing panics: it panicked: stuck",
        ]
    );
    log.expect(&["first"]);
    kernel.dispose().await.unwrap();
}

/// RUN-2.
#[tokio::test]
async fn a_plugin_waits_for_its_needs_starts_when_they_come_and_stops_when_they_go() {
    let log = Log::default();
    let kernel = Kernel::new();
    let consumer = kernel
        .mount(logging("consumer", &log, vec![key::<One>()], vec![]))
        .await
        .unwrap();
    assert_eq!(
        kernel.state(&consumer),
        PluginState::Waiting(vec![key::<One>()])
    );
    let provider = kernel
        .mount(logging("provider", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    assert_eq!(kernel.settled(&consumer).await, PluginState::Started);
    kernel.unmount(&provider).await.unwrap();
    assert_eq!(
        kernel.state(&consumer),
        PluginState::Waiting(vec![key::<One>()])
    );
    log.expect(&["+provider", "+consumer", "-consumer", "-provider"]);
    kernel
        .mount(logging("second", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    assert_eq!(kernel.settled(&consumer).await, PluginState::Started);
    log.expect(&[
        "+provider",
        "+consumer",
        "-consumer",
        "-provider",
        "+second",
        "+consumer",
    ]);
    kernel.dispose().await.unwrap();
}

/// RUN-2, DIS-3.
#[tokio::test]
async fn disposal_stops_dependents_first_and_waits_for_each() {
    let log = Log::default();
    let kernel = Kernel::new();
    kernel
        .mount(logging("base", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    kernel
        .mount(logging(
            "middle",
            &log,
            vec![key::<One>()],
            vec![key::<Two>()],
        ))
        .await
        .unwrap();
    let sink = log.clone();
    let top = Fake {
        name: "top",
        needs: vec![key::<Two>(), key::<One>()],
        provides: vec![],
        body: Box::new(move |ctx| {
            let (log, ctx) = (sink.clone(), ctx.clone());
            async move {
                let services = ctx.clone();
                ctx.effect_async("slow", move || {
                    async move {
                        for _ in 0..20 {
                            tokio::task::yield_now().await;
                        }
                        services.service::<One>()?;
                        services.service::<Two>()?;
                        log.add("-top");
                        Ok(())
                    }
                    .boxed()
                });
                Ok(())
            }
            .boxed()
        }),
    };
    kernel.mount(Arc::new(top)).await.unwrap();
    kernel.dispose().await.unwrap();
    log.expect(&["+base", "+middle", "-top", "-middle", "-base"]);
}

/// CFG-6.
#[tokio::test]
async fn unloading_during_start_cancels_it_and_waits_for_its_end() {
    let log = Log::default();
    let kernel = Kernel::new();
    let (slow, running, release) = slow(&log, true);
    let handle = kernel.add(slow).await.unwrap();
    running.await.unwrap();
    {
        let unmount = kernel.unmount(&handle);
        tokio::pin!(unmount);
        for _ in 0..20 {
            assert!(futures::poll!(&mut unmount).is_pending());
            tokio::task::yield_now().await;
        }
        log.expect(&[]);
        release.notify_one();
        unmount.await.unwrap();
    }
    log.expect(&["start ended", "undone"]);
    kernel.dispose().await.unwrap();
}

/// CFG-6: a provider that goes takes a dependent's start with it, and waits for its end.
#[tokio::test]
async fn a_need_that_goes_during_a_start_cancels_the_start() {
    let log = Log::default();
    let kernel = Kernel::new();
    let provider = kernel
        .mount(logging("provider", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    let (slow, running, _) = slow(&log, false);
    let mut slow = Arc::into_inner(slow).unwrap();
    slow.needs = vec![key::<One>()];
    let slow = kernel.add(Arc::new(slow)).await.unwrap();
    running.await.unwrap();
    kernel.unmount(&provider).await.unwrap();
    log.expect(&["+provider", "start ended", "undone", "-provider"]);
    assert_eq!(
        kernel.state(&slow),
        PluginState::Waiting(vec![key::<One>()])
    );
    kernel.dispose().await.unwrap();
}

#[tokio::test]
async fn a_mount_that_is_given_up_unloads_the_plugin() {
    let log = Log::default();
    let kernel = Kernel::new();
    let (slow, running, _) = slow(&log, false);
    tokio::select! {
        biased;
        _ = kernel.mount(slow) => panic!("it cannot start"),
        result = running => result.unwrap(),
    }
    kernel.dispose().await.unwrap();
    log.expect(&["start ended", "undone"]);
}

/// DIS-4, DIS-5.
#[tokio::test]
async fn disposal_collects_all_failures_and_every_caller_waits_for_the_same_end() {
    let kernel = Kernel::new();
    let ran = Arc::new(AtomicUsize::new(0));
    for name in ["a", "b"] {
        let ran = Arc::clone(&ran);
        kernel
            .mount(plugin(name, move |ctx| {
                let ran = Arc::clone(&ran);
                async move {
                    ctx.effect_async("server", move || {
                        async move {
                            tokio::task::yield_now().await;
                            ran.fetch_add(1, Ordering::SeqCst);
                            Err(PluginError::new("will not end"))
                        }
                        .boxed()
                    });
                    Ok(())
                }
                .boxed()
            }))
            .await
            .unwrap();
    }
    let (one, two) = tokio::join!(kernel.dispose(), kernel.dispose());
    assert_eq!(one, two);
    assert_eq!(ran.load(Ordering::SeqCst), 2);
    let mut plugins: Vec<_> = one
        .unwrap_err()
        .failures()
        .iter()
        .map(|failure| failure.plugin.clone())
        .collect();
    plugins.sort();
    assert_eq!(plugins, ["a", "b"]);
    assert_eq!(kernel.dispose().await, two);
    let error = kernel
        .mount(plugin("late", |_| async { Ok(()) }.boxed()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("KERNEL_DISPOSED"));
}

#[tokio::test]
async fn a_disposal_that_nobody_waits_for_goes_on() {
    let log = Log::default();
    let kernel = Kernel::new();
    let gate = Arc::new(Notify::new());
    let (held, sink) = (Arc::clone(&gate), log.clone());
    kernel
        .mount(plugin("p", move |ctx| {
            let (held, sink) = (Arc::clone(&held), sink.clone());
            async move {
                ctx.effect_async("held", move || {
                    async move {
                        held.notified().await;
                        sink.add("undone");
                        Ok(())
                    }
                    .boxed()
                });
                Ok(())
            }
            .boxed()
        }))
        .await
        .unwrap();
    {
        let disposal = kernel.dispose();
        tokio::pin!(disposal);
        assert!(futures::poll!(&mut disposal).is_pending());
    }
    gate.notify_one();
    kernel.dispose().await.unwrap();
    log.expect(&["undone"]);
}

/// DIS-6: contexts are held by what plugins registered; a dropped kernel still lets go of it all.
#[tokio::test]
async fn a_dropped_kernel_drops_what_its_plugins_registered() {
    struct Process {
        _context: Context,
        gone: Option<oneshot::Sender<()>>,
    }
    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.gone.take().unwrap().send(());
        }
    }
    let kernel = Kernel::new();
    let mut ends = Vec::new();
    for by_effect in [true, false] {
        let (gone, end) = oneshot::channel();
        ends.push(end);
        let gone = Mutex::new(Some(gone));
        let body: Body = Box::new(move |ctx| {
            let process = Arc::new(Process {
                _context: ctx.clone(),
                gone: lock(&gone).take(),
            });
            async move {
                if by_effect {
                    ctx.effect("process", move || drop(process));
                } else {
                    ctx.provide::<Process>(process)?;
                }
                Ok(())
            }
            .boxed()
        });
        let provides = if by_effect {
            vec![]
        } else {
            vec![key::<Process>()]
        };
        kernel
            .mount(Arc::new(Fake {
                name: "p",
                needs: vec![],
                provides,
                body,
            }))
            .await
            .unwrap();
    }
    drop(kernel);
    for mut end in ends {
        end.try_recv().expect("dropped together with the kernel");
    }
}

#[tokio::test]
async fn a_service_that_a_plugin_did_not_name_is_refused_both_ways() {
    let kernel = Kernel::new();
    let log = Log::default();
    kernel
        .mount(logging("provider", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    let sneak = plugin("sneak", |ctx| {
        async { ctx.service::<One>().map(drop) }.boxed()
    });
    let error = kernel.mount(sneak).await.unwrap_err();
    assert_eq!(error.code(), Some("SERVICE_UNDECLARED"));
    assert!(error.to_string().contains("add it to needs()"), "{error}");
    let pusher = plugin("pusher", |ctx| async { ctx.provide(Arc::new(Two)) }.boxed());
    let error = kernel.mount(pusher).await.unwrap_err();
    assert_eq!(error.code(), Some("SERVICE_UNDECLARED"));
}

#[tokio::test]
async fn a_promised_service_must_be_provided() {
    let kernel = Kernel::new();
    let mut liar = Arc::into_inner(plugin("liar", |_| async { Ok(()) }.boxed())).unwrap();
    liar.provides = vec![key::<One>()];
    let error = kernel.mount(Arc::new(liar)).await.unwrap_err();
    assert_eq!(error.code(), Some("SERVICE_NOT_PROVIDED"));
}

#[tokio::test]
async fn two_plugins_that_provide_the_same_are_refused_and_one_that_needs_itself_too() {
    let kernel = Kernel::new();
    let log = Log::default();
    let first = kernel
        .mount(logging("first", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
    let error = kernel
        .mount(logging("second", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("SERVICE_CONFLICT"));
    assert!(error.to_string().contains("first"), "{error}");
    let circle = logging("circle", &log, vec![key::<Two>()], vec![key::<Two>()]);
    assert_eq!(
        kernel.mount(circle).await.unwrap_err().code(),
        Some("PLUGIN_NEEDS_ITSELF")
    );
    kernel.unmount(&first).await.unwrap();
    kernel
        .mount(logging("second", &log, vec![], vec![key::<One>()]))
        .await
        .unwrap();
}

/// RUN-1: listeners are effects.
#[tokio::test]
async fn a_listener_goes_with_its_plugin() {
    struct Ping;
    impl Event for Ping {
        const NAME: &'static str = "test/ping";
    }
    let kernel = Kernel::new();
    let log = Log::default();
    let sink = log.clone();
    let handle = kernel
        .mount(plugin("listener", move |ctx| {
            let log = sink.clone();
            ctx.on(move |_: &Ping| log.add("heard"));
            async { Ok(()) }.boxed()
        }))
        .await
        .unwrap();
    kernel.events().emit(&Ping);
    kernel.unmount(&handle).await.unwrap();
    kernel.events().emit(&Ping);
    log.expect(&["heard"]);
}

/// RUN-1: nothing that is registered too late stays behind.
#[tokio::test]
async fn an_effect_registered_after_unload_is_undone_all_the_same() {
    let kernel = Kernel::new();
    let log = Log::default();
    let kept: Arc<Mutex<Option<Context>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let handle = kernel
        .mount(plugin("p", move |ctx| {
            *lock(&keep) = Some(ctx.clone());
            async { Ok(()) }.boxed()
        }))
        .await
        .unwrap();
    kernel.unmount(&handle).await.unwrap();
    let context = lock(&kept).take().unwrap();
    context.effect("now", log.undo("now"));
    log.expect(&["now"]);
    let sink = log.clone();
    context.effect_async("later", move || {
        async move {
            sink.add("later");
            Err(PluginError::new("refused"))
        }
        .boxed()
    });
    let errors = kernel.dispose().await.unwrap_err();
    assert_eq!(errors.to_string(), "plugin p: undoing later: refused");
    log.expect(&["now", "later"]);
    assert_eq!(
        context.provide(Arc::new(One)).unwrap_err().code(),
        Some("SERVICE_UNDECLARED")
    );
}

#[tokio::test]
async fn a_kernel_without_plugins_disposes_at_once() {
    let kernel = Kernel::new();
    kernel.dispose().await.unwrap();
    kernel.dispose().await.unwrap();
}

/// RUN-2.
#[tokio::test]
async fn a_dependent_of_a_plugin_that_failed_waits_and_does_not_hang() {
    let kernel = Kernel::new();
    let log = Log::default();
    let consumer = kernel
        .mount(logging("consumer", &log, vec![key::<One>()], vec![]))
        .await
        .unwrap();
    let mut failing = Arc::into_inner(plugin("failing", |_| {
        async { Err(PluginError::new("no")) }.boxed()
    }))
    .unwrap();
    failing.provides = vec![key::<One>()];
    let failing = kernel.add(Arc::new(failing)).await.unwrap();
    assert_eq!(
        kernel.settled(&failing).await,
        PluginState::Failed(PluginError::new("no"))
    );
    assert_eq!(
        kernel.settled(&consumer).await,
        PluginState::Waiting(vec![key::<One>()])
    );
    kernel.dispose().await.unwrap();
    log.expect(&[]);
}

/// INS-18: a service that is only watched neither holds up the start nor ends the run, and is there
/// exactly while a started plugin provides it.
#[tokio::test]
async fn a_watched_service_comes_and_goes_without_the_watcher() {
    let kernel = Kernel::new();
    let log = Log::default();
    let slot: Arc<Mutex<Option<crate::Watched<One>>>> = Arc::default();
    let sink = Arc::clone(&slot);
    let watcher = plugin("watcher", move |ctx| {
        *lock(&sink) = Some(ctx.watch::<One>());
        async { Ok(()) }.boxed()
    });
    let watcher = kernel.mount(watcher).await.expect("it needs nothing");
    let seen = lock(&slot).clone().expect("it has started");
    assert!(seen.current().is_none());

    let provider = logging("provider", &log, vec![], vec![key::<One>()]);
    let provider = kernel.mount(provider).await.expect("mounted");
    assert!(seen.current().is_some());
    assert_eq!(kernel.state(&watcher), PluginState::Started);

    kernel.unmount(&provider).await.expect("unmounted");
    assert!(seen.current().is_none());
    assert_eq!(kernel.state(&watcher), PluginState::Started);
    log.expect(&["+provider", "-provider"]);
    kernel.dispose().await.expect("disposed");
    assert!(seen.current().is_none());
}
