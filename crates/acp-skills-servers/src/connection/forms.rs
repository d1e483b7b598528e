//! [`Forms`]: decides which forms of a server the user sees. A form belongs to a call
//! ([elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)), so a server can't ask by itself, and a
//! user who declines a form is not asked again during the call.

use std::sync::Arc;

use parking_lot::Mutex;

/// The maximum number of forms that the user sees during a call.
const MAX_FORMS: usize = 8;

/// The forms of one server. All clones share their state.
#[derive(Debug, Clone, Default)]
pub(super) struct Forms(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The number of open calls. The other fields are reset when it is zero.
    calls: usize,
    shown: usize,
    is_open: bool,
    is_declined: bool,
}

/// An open call. It ends when this value is dropped.
pub(super) struct OpenCall(Forms);

impl Forms {
    /// Notes that a call begins.
    pub(super) fn call(&self) -> OpenCall {
        self.0.lock().calls += 1;
        OpenCall(self.clone())
    }

    /// Returns true if the user may see a form now. [`close`](Self::close) has to be called afterwards.
    pub(super) fn open(&self) -> bool {
        let mut state = self.0.lock();
        let may_open = state.calls > 0 && !state.is_open && !state.is_declined && state.shown < MAX_FORMS;
        if may_open {
            state.is_open = true;
            state.shown += 1;
        }
        may_open
    }

    /// Notes that the user has answered the form, or has declined it.
    pub(super) fn close(&self, is_accepted: bool) {
        let mut state = self.0.lock();
        state.is_open = false;
        state.is_declined |= !is_accepted && state.calls > 0;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.calls -= 1;
        if state.calls == 0 {
            *state = State { is_open: state.is_open, ..State::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_belong_to_calls() {
        let forms = Forms::default();
        assert!(!forms.open(), "there is no call");
        let call = forms.call();
        assert!(forms.open() && !forms.open(), "one form at a time");
        forms.close(true);
        assert!(forms.open());
        forms.close(false);
        assert!(!forms.open(), "the user has declined a form");
        let other = forms.call();
        drop(call);
        assert!(!forms.open(), "the calls overlap");
        drop(other);
        assert!(!forms.open());
        let call = forms.call();
        for _ in 0..MAX_FORMS {
            assert!(forms.open());
            forms.close(true);
        }
        assert!(!forms.open(), "there were too many forms");
        drop(call);
        let call = forms.call();
        assert!(forms.open());
        drop(call);
        let _call = forms.call();
        assert!(!forms.open(), "the form of the earlier call is still open");
        forms.close(false);
        assert!(!forms.open());
    }
}
