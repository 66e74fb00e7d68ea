//! The process itself: memory, open files, processor time, and the tasks of its runtime. What only Linux tells is left
//! out elsewhere.

use std::{fs, time::Instant};

use opentelemetry::metrics::Meter;
use rustix::process::{Resource, getrlimit};
use tokio::runtime::Handle;

use super::watches::number;

/// Parts of a second in which Linux tells processor time, the same on all of its architectures.
const TICKS: f64 = 100.0;

pub(super) fn watch(meter: &Meter) {
    watch_process(meter);
    // Metrics that are made outside of a runtime measure what runs in none.
    if let Ok(runtime) = Handle::try_current() {
        watch_runtime(meter, runtime);
    }
}

fn watch_process(meter: &Meter) {
    meter
        .u64_observable_gauge("process.memory.usage")
        .with_unit("By")
        .with_description("Resident memory.")
        .with_callback(|observer| {
            if let Some(bytes) = resident_memory() {
                observer.observe(bytes, &[]);
            }
        })
        .build();
    meter
        .u64_observable_gauge("process.unix.file_descriptor.count")
        .with_description("Open files and sockets.")
        .with_callback(|observer| {
            if let Some(count) = open_files() {
                observer.observe(count, &[]);
            }
        })
        .build();
    meter
        .u64_observable_gauge("jmg.process.file_descriptor.max")
        .with_description("The limit of open files.")
        .with_callback(|observer| {
            if let Some(max) = getrlimit(Resource::Nofile).current {
                observer.observe(max, &[]);
            }
        })
        .build();
    meter
        .f64_observable_counter("process.cpu.time")
        .with_unit("s")
        .with_description("Processor time.")
        .with_callback(|observer| {
            if let Some(seconds) = processor_time() {
                observer.observe(seconds, &[]);
            }
        })
        .build();
    let started = Instant::now();
    meter
        .f64_observable_gauge("process.uptime")
        .with_unit("s")
        .with_description("Time since the start.")
        .with_callback(move |observer| observer.observe(started.elapsed().as_secs_f64(), &[]))
        .build();
}

fn watch_runtime(meter: &Meter, runtime: Handle) {
    let (tasks, queue) = (runtime.clone(), runtime.clone());
    let alive = move || tasks.metrics().num_alive_tasks();
    number(meter, "jmg.tokio.tasks", "Tasks that live.", alive);
    let waiting = move || queue.metrics().global_queue_depth();
    let what = "Tasks that wait for a worker in the common queue.";
    number(meter, "jmg.tokio.queue", what, waiting);
    let workers = move || runtime.metrics().num_workers();
    number(meter, "jmg.tokio.workers", "Threads that run tasks.", workers);
}

fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn open_files() -> Option<u64> {
    // The one by which they are listed is not counted.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64)
}

fn processor_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have spaces and brackets in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        assert!(resident_memory().is_some_and(|bytes| bytes > 1024 * 1024));
        assert!(open_files().is_some_and(|count| count >= 3));
        assert!(processor_time().is_some_and(|seconds| seconds >= 0.0));
    }
}
