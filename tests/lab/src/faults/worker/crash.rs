use std::ptr;

/// Where in the binary the thread stood, as many calls back.
const FRAMES: u8 = 64;

/// Has a crash of this process written to its log: nothing else is left of one in a library.
#[cfg(target_env = "gnu")]
pub fn tell_where() {
    // SAFETY: a zeroed `sigaction` is a valid one, and the handler does as little as such a handler may. The first
    // call loads what `backtrace` needs, so that the handler does not.
    unsafe {
        libc::backtrace([ptr::null_mut(); 1].as_mut_ptr(), 1);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = crashed as extern "C" fn(libc::c_int) as usize;
        // Once: after it has returned, the crash takes its course.
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT] {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn tell_where() {}

#[cfg(target_env = "gnu")]
extern "C" fn crashed(_signal: libc::c_int) {
    let mut frames = [ptr::null_mut(); FRAMES as usize];
    let text = b"crashed at (addr2line -e lab, nm lab)\n";
    // SAFETY: the buffers outlive the calls, none of which allocates.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        let count = libc::backtrace(frames.as_mut_ptr(), FRAMES.into());
        libc::backtrace_symbols_fd(frames.as_ptr(), count, libc::STDERR_FILENO);
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    const CRASH: &str = "CRASH_OF_A_TEST";

    #[test]
    fn a_crash_leaves_its_place_in_the_log() {
        if env::var_os(CRASH).is_some() {
            super::tell_where();
            // SAFETY: it is meant to crash, by the second: the handler goes on behind a signal that was only sent.
            unsafe {
                libc::raise(libc::SIGSEGV);
                libc::raise(libc::SIGSEGV);
            }
        }
        let program = env::current_exe().expect("a process knows its path");
        let mut command = Command::new(program);
        command.args(["a_crash_leaves_its_place_in_the_log", "--nocapture"]).env(CRASH, "1");
        let output = command.output().expect("it starts");
        assert!(!output.status.success());
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("crashed at") && log.contains("lab-"), "{log}");
    }
}
