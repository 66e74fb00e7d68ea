//! The kernel that code is run in, as far as the core knows of it.

use jupyter_client::SESSIONS_FRESH;
use tokio::time::Instant;

use super::{input::KernelInfo, liveness::Liveness, widgets::OutputWidgets};
use crate::policy::{KERNEL_TRUSTED, KERNEL_UNSETTLED, STARTING_TIMEOUT};

/// The life of the kernel, seen from its queue.
pub(crate) enum KernelState {
    None,
    /// It is being looked up, started, or reconnected to.
    Wanted,
    Connected(Kernel),
    /// A lookup is under way whether it is still the notebook's.
    Checked(Kernel),
}

pub(crate) struct Kernel {
    pub(crate) id: String,
    /// Of the connection.
    pub(crate) session: String,
    /// The gateway started it.
    pub(crate) started: bool,
    pub(crate) is_connected: bool,
    pub(crate) liveness: Liveness,
    pub(crate) widgets: OutputWidgets,
    checked_at: Instant,
    /// Time of the connection, or of the first sign of another process behind it.
    new_since: Instant,
}

impl KernelState {
    pub(crate) fn get(&self) -> Option<&Kernel> {
        match self {
            Self::Connected(kernel) | Self::Checked(kernel) => Some(kernel),
            Self::None | Self::Wanted => None,
        }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut Kernel> {
        match self {
            Self::Connected(kernel) | Self::Checked(kernel) => Some(kernel),
            Self::None | Self::Wanted => None,
        }
    }

    pub(crate) fn is_looked_for(&self) -> bool {
        matches!(self, Self::Wanted | Self::Checked(_))
    }

    pub(crate) fn begin_lookup(&mut self) {
        *self = match std::mem::replace(self, Self::None) {
            Self::Connected(kernel) | Self::Checked(kernel) => Self::Checked(kernel),
            Self::None | Self::Wanted => Self::Wanted,
        };
    }

    /// Records that the connected kernel is still the notebook's.
    pub(crate) fn on_same(&mut self, now: Instant) {
        *self = match std::mem::replace(self, Self::None) {
            Self::Connected(mut kernel) | Self::Checked(mut kernel) => {
                kernel.checked_at = now;
                Self::Connected(kernel)
            }
            Self::None | Self::Wanted => Self::None,
        };
    }

    /// Forgets a kernel that is gone. A lookup that is under way goes on.
    pub(crate) fn on_gone(&mut self) {
        *self = match self {
            Self::Wanted | Self::Checked(_) => Self::Wanted,
            Self::None | Self::Connected(_) => Self::None,
        };
    }

    /// Returns whether it is connected and busy with a request of somebody else.
    pub(crate) fn is_used_by_others(&self, now: Instant, changed: Option<Instant>) -> bool {
        self.get().is_some_and(|kernel| {
            let is_usable = kernel.is_connected && kernel.liveness.is_heard() && !kernel.is_doubtful(now, changed);
            is_usable && !kernel.liveness.is_free()
        })
    }

    /// Returns whether something waits for it to be free.
    pub(crate) fn is_awaited(&self) -> bool {
        self.get().is_some_and(|kernel| kernel.liveness.is_free_awaited())
    }
}

impl Kernel {
    pub(crate) fn new(info: KernelInfo, now: Instant) -> Self {
        Self {
            id: info.id,
            session: info.session,
            started: info.started,
            is_connected: true,
            liveness: Liveness::new(info.busy, now),
            widgets: OutputWidgets::default(),
            checked_at: now,
            new_since: now,
        }
    }

    /// Returns whether it should be looked up again before it is used.
    pub(crate) fn is_doubtful(&self, now: Instant, kernels_changed: Option<Instant>) -> bool {
        let age = now - self.checked_at;
        let is_unsettled = kernels_changed.is_some_and(|changed| {
            let since = now - changed;
            since < KERNEL_UNSETTLED && (since < age || age > SESSIONS_FRESH)
        });
        age > KERNEL_TRUSTED || is_unsettled
    }

    /// Returns whether code can be sent to it.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_connected && self.liveness.is_heard() && self.liveness.is_free()
    }

    /// Records that another process is behind the connection.
    pub(crate) fn on_new_process(&mut self, now: Instant) {
        self.liveness.on_new_process(now);
        self.widgets = OutputWidgets::default();
        self.new_since = now;
    }

    /// Returns whether its process may have started just before the connection.
    pub(crate) fn is_new(&self, now: Instant) -> bool {
        now - self.new_since < STARTING_TIMEOUT
    }
}
