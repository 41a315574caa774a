//! What a check costs the processor, beside waiting. The time of the whole process is in it, so
//! this test has a process to itself.

#![cfg(unix)]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

fn thread_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[tokio::test]
async fn waiting_does_not_count_and_work_does() {
    let ((), waited) = dsh_e2e::measured(async {
        let nothing = std::future::pending::<()>();
        let _ = tokio::time::timeout(Duration::from_millis(200), nothing).await;
    })
    .await;
    assert!(waited.wall_us >= 200_000, "{waited:?}");
    assert!(waited.busy_us < waited.wall_us / 2, "{waited:?}");
    let (_, worked) = dsh_e2e::measured(async {
        let begin = thread_ns();
        let mut sum = 0_u64;
        while thread_ns() - begin < 50_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        sum
    })
    .await;
    assert!(worked.busy_us >= 50_000, "{worked:?}");
    assert!(worked.wall_us >= 50_000, "{worked:?}");
}
