//! One watched command from start to end: everything that happens comes in as an event, and is decided upon here.
//!
//! The way of a command: attach to the monitor -> start -> relay and watch -> the command ends or is killed -> what it
//! left behind is ended -> the last bytes -> Detach -> Summary -> all of its output is read by whoever reads ours -> exit
//! code.

use std::io::{PipeWriter, pipe};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{self, Signal, WaitId, WaitIdOptions};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, interval_at, sleep, timeout};
use uuid::Uuid;

use super::arguments::{OnDisconnect, WatchArguments};
use super::launch::{adopt_orphans, launch, take_terminal_back};
use super::local::Local;
use super::monitor::{Heard, Monitor};
use super::outbox::{Outbox, Requests, Stream};
use super::relay::{End, Relay, relay_keys};
use super::show::{Teller, stronger_unknown};
use super::shown::Shown;
use super::signals;
use super::terminal::{Pseudo, Raw, copy_size, hand_over, has_job_control, is_interactive, wait_for_front};
use super::tree::Tree;
use crate::cli::{Exit, Failure};
use crate::pb::v1;
use crate::pb::v1::stream_monitor_response::Kind;

/// Exit code when a verdict stopped the command.
const KILLED_BY_VERDICT: u8 = 86;
/// Exit code when the command could not be watched any longer.
const KILLED_ON_DISCONNECT: u8 = 87;
/// What signal N adds to the exit code, as shells do.
const SIGNAL_BASE: i32 = 128;

/// How long a monitor may take to say that it watches.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long what a command leaves behind may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How often a monitor is told that we are still here, while the command may be silent.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long the last verdicts and the summary are waited for once the command has ended.
const SUMMARY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long our own output may take to be read, once we were asked to end.
const LAST_WRITES: Duration = Duration::from_secs(1);
/// How long a program may take to put its screen right before it is suspended.
const SUSPEND_DELAY: Duration = Duration::from_millis(100);
/// Events that wait; who brings more has to wait too.
const EVENTS_MAX: usize = 1024;

/// Something that happened.
#[derive(Debug)]
enum Event {
    /// From the monitor with this number.
    Monitor(u32, Heard),
    /// A signal came to us.
    Signal(Signal),
    /// The key that suspends was pressed.
    SuspendKey,
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command has ended with this code.
    Exited(i32),
    /// Nothing is left of it; so many that it left behind were ended.
    Emptied(usize),
    /// One of its streams has ended.
    Closed(End),
    /// One of our own has: all of it was written, or nobody reads it.
    Written,
}

/// See the module.
pub(super) struct Session<'a> {
    arguments: &'a WatchArguments,
    monitor: Monitor,
    /// Who watches when the monitor goes away.
    fallback: Option<Arc<Local>>,
    runtime: Handle,
    outbox: Arc<Outbox>,
    /// Our standard output and standard error.
    shown: [Arc<Shown>; 2],
    teller: Teller,
    id: String,
    events: Receiver<Event>,
    sender: Sender<Event>,
    /// Number of the monitor that is listened to; earlier ones are gone.
    generation: u32,
}

/// The command once it runs.
struct Running {
    tree: Tree,
    /// The near side of its terminal.
    near: Option<OwnedFd>,
    raw: Option<Raw>,
    /// Streams that have not ended.
    open: usize,
    /// The same of our own.
    unwritten: usize,
    /// Dropped when nothing of the command is left.
    is_there: Option<PipeWriter>,
    /// Its exit code.
    code: Option<i32>,
    /// Why it was killed, as our exit code.
    killed: Option<u8>,
    /// Whether it was given our terminal.
    has_terminal: bool,
    /// When the monitor was told that it is over.
    detached: Option<Instant>,
    /// Whether nobody watches any longer.
    is_unwatched: bool,
    /// Whether the last word of the monitor has been heard, or is not waited for.
    is_concluded: bool,
    /// Whether we were asked to end while only the last was waited for.
    is_hurried: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        arguments: &'a WatchArguments,
        monitor: Monitor,
        fallback: Option<Arc<Local>>,
        runtime: Handle,
    ) -> std::io::Result<Self> {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let show = |to, name| {
            let sender = sender.clone();
            Shown::start(to, name, move || drop(sender.blocking_send(Event::Written)))
        };
        let shown =
            [show(rustix::stdio::stdout(), "watch-stdout")?, show(rustix::stdio::stderr(), "watch-stderr")?];
        Ok(Self {
            arguments,
            monitor,
            fallback,
            runtime,
            outbox: Arc::new(Outbox::default()),
            teller: Teller::new(arguments.json, shown[Stream::Errors as usize].clone()),
            shown,
            id: arguments.session().map_or_else(|| Uuid::now_v7().to_string(), str::to_owned),
            events,
            sender,
            generation: 0,
        })
    }

    /// Runs the command to its end and answers how we end.
    pub(super) async fn run(mut self) -> Result<Exit, Failure> {
        self.attach().await?;
        let mut running = self
            .start()
            .map_err(|error| Failure::internal(format_args!("the command could not be started: {error}")))?;
        let mut alive = interval_at(Instant::now() + ALIVE_INTERVAL, ALIVE_INTERVAL);
        while !(running.is_concluded && running.code.is_some() && running.open == 0) {
            let limit = running.detached.map(|since| since + SUMMARY_TIMEOUT);
            let event = tokio::select! {
                event = self.events.recv() => event,
                _ = alive.tick() => {
                    self.outbox.keep_alive();
                    continue;
                }
                () = until(limit) => {
                    self.away(&mut running, "no summary came in time").await;
                    running.is_concluded = true;
                    continue;
                }
            };
            // This session has a sender itself.
            let Some(event) = event else { break };
            self.on(event, &mut running).await;
        }
        if let Monitor::Local(local) = &self.monitor {
            local.finish().await;
        }
        self.drain(&mut running).await;
        Ok(self.exit(&running))
    }

    /// Waits until all that we show was written; not for ever once we were asked to end.
    async fn drain(&mut self, running: &mut Running) {
        self.shown.iter().for_each(|shown| shown.close());
        let limit = || Some(Instant::now() + LAST_WRITES);
        let mut until_then = if running.is_hurried { limit() } else { None };
        while running.unwritten > 0 {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = until(until_then) => return,
            };
            match event {
                Some(Event::Written) => running.unwritten -= 1,
                Some(Event::Signal(Signal::TSTP)) | Some(Event::SuspendKey) => suspend(running),
                Some(Event::Signal(signal))
                    if !matches!(signal, Signal::CHILD | Signal::WINCH | Signal::CONT) =>
                {
                    until_then = until_then.or_else(limit);
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Attaches to the monitor and waits until it says that it watches.
    async fn attach(&mut self) -> Result<(), Failure> {
        let url = match &self.monitor {
            Monitor::Server(url, _) => url.as_str(),
            Monitor::Local(_) => "the monitor",
        };
        let late = Failure { exit: Exit::ServerAway, message: format!("{url}: did not answer in time") };
        let attached = timeout(ATTACH_TIMEOUT, async {
            let requests = self.connect(self.monitor.clone()).await?;
            loop {
                match self.events.recv().await {
                    Some(Event::Monitor(_, Heard::Said(said))) => match said.kind {
                        Some(Kind::Attached(_)) => return Ok(requests),
                        _ => continue,
                    },
                    Some(Event::Monitor(_, Heard::Ended(Err(failure)))) => return Err(failure),
                    Some(Event::Monitor(_, Heard::Ended(Ok(())))) | None => {
                        let message = "the monitor ended the session before it began".to_owned();
                        return Err(Failure { exit: Exit::ServerAway, message });
                    }
                    Some(_) => {}
                }
            }
        });
        let requests = attached.await.map_err(|_| late)??;
        self.outbox.connect(requests);
        Ok(())
    }

    async fn connect(&self, monitor: Monitor) -> Result<Requests, Failure> {
        let (sender, generation) = (self.sender.clone(), self.generation);
        let tell = move |heard| {
            let sender = sender.clone();
            async move {
                // Nobody listens any longer once the session is over.
                let _ = sender.send(Event::Monitor(generation, heard)).await;
            }
        };
        monitor.attach(self.arguments.attach(&self.id), self.outbox.clone(), tell).await
    }

    /// Starts the command and everything that brings events.
    fn start(&mut self) -> std::io::Result<Running> {
        adopt_orphans()?;
        let sender = self.sender.clone();
        // A full queue drops a signal no more than the kernel does, which merges those that wait.
        signals::listen(&self.runtime, move |signal| drop(sender.try_send(Event::Signal(signal))))?;
        let pseudo = if is_interactive() { Some(Pseudo::like_ours()?) } else { None };
        let launched = launch(&self.arguments.words, pseudo.as_ref())?;
        let tree = launched.tree;
        let near = pseudo.map(Pseudo::into_near_side);
        if let Some(near) = &near {
            wait_for_front(near.as_fd(), tree.leader());
        }
        let raw = if near.is_some() { Some(Raw::enter()?) } else { None };
        self.teller.is_raw = raw.is_some();

        let (gone, is_there) = pipe()?;
        let mut open = 0;
        let streams = [(Some(launched.output), Stream::Output), (launched.errors, Stream::Errors)];
        for (from, stream) in streams {
            let Some(from) = from else { continue };
            let relay = Relay {
                from,
                stream,
                outbox: self.outbox.clone(),
                shown: self.shown[stream as usize].clone(),
                command_is_gone: gone.try_clone()?,
                is_terminal: near.is_some() && stream == Stream::Output,
            };
            let sender = self.sender.clone();
            relay.start(move |end| drop(sender.blocking_send(Event::Closed(end))))?;
            open += 1;
        }
        if let Some(near) = &near {
            let sender = self.sender.clone();
            relay_keys(near.try_clone()?, tree.leader(), move || {
                drop(sender.blocking_send(Event::SuspendKey));
            })?;
        }
        let sender = self.sender.clone();
        std::thread::Builder::new().name("watch-child".to_owned()).spawn(move || follow(tree, &sender))?;
        Ok(Running {
            tree,
            near,
            raw,
            open,
            unwritten: self.shown.len(),
            is_there: Some(is_there),
            code: None,
            killed: None,
            has_terminal: false,
            detached: None,
            is_unwatched: false,
            is_concluded: false,
            is_hurried: false,
        })
    }

    async fn on(&mut self, event: Event, running: &mut Running) {
        match event {
            // What an earlier monitor still says is of no use.
            Event::Monitor(generation, heard) if generation == self.generation => {
                self.heard(heard, running).await;
            }
            Event::Monitor(..) => {}
            Event::Signal(signal) => self.signal(signal, running).await,
            Event::SuspendKey => {
                sleep(SUSPEND_DELAY).await;
                suspend(running);
            }
            Event::Stopped(signal) => stopped(signal, running),
            Event::Exited(code) => {
                running.code = Some(code);
                self.empty(running.tree);
            }
            Event::Emptied(left) => {
                if left > 0 && running.killed.is_none() {
                    let message = format!("ended {left} process(es) that the command left behind");
                    self.teller.note("left_behind", &message);
                }
                running.is_there = None;
                self.expect_last();
            }
            Event::Closed(end) => {
                running.open -= 1;
                if end == End::NobodyReads && running.near.is_some() {
                    running.tree.signal_group(Signal::HUP);
                }
            }
            Event::Written => running.unwritten -= 1,
        }
        self.conclude(running);
    }

    async fn heard(&mut self, heard: Heard, running: &mut Running) {
        match heard {
            Heard::Said(said) => {
                if let Some(Kind::Verdict(verdict)) = &said.kind
                    && stronger_unknown(verdict.verdict()) == v1::VerdictKind::Kill
                {
                    // First of all, and before anybody is told.
                    self.kill(running, KILLED_BY_VERDICT);
                }
                self.teller.said(&said);
                if matches!(said.kind, Some(Kind::Summary(_))) && running.detached.is_some() {
                    running.is_concluded = true;
                }
            }
            Heard::Ended(_) if running.is_concluded => {}
            Heard::Ended(how) => {
                let why = how.err().map_or_else(|| "the session ended too early".to_owned(), |f| f.message);
                self.away(running, &why).await;
            }
        }
    }

    /// The monitor is gone before it has seen everything.
    async fn away(&mut self, running: &mut Running, why: &str) {
        self.outbox.disconnect();
        self.generation += 1;
        let is_server = matches!(self.monitor, Monitor::Server(..));
        let then = if is_server { self.arguments.on_disconnect } else { OnDisconnect::Kill };
        match (then, self.fallback.take()) {
            (OnDisconnect::Continue, _) => {
                self.teller.note("unwatched", &format!("{why}; nobody watches the command any longer"));
                self.outbox.give_up();
                running.is_unwatched = true;
                running.is_concluded = running.detached.is_some();
            }
            (OnDisconnect::Local, Some(local)) => {
                self.teller.note("local", &format!("{why}; this process watches now"));
                self.monitor = Monitor::Local(local);
                match self.connect(self.monitor.clone()).await {
                    Ok(requests) => {
                        self.outbox.connect(requests);
                        running.detached = running.detached.map(|_| Instant::now());
                    }
                    Err(failure) => self.lost(running, &failure.message),
                }
            }
            _ => self.lost(running, why),
        }
    }

    /// Nobody can watch any longer.
    fn lost(&mut self, running: &mut Running, why: &str) {
        self.kill(running, KILLED_ON_DISCONNECT);
        let what = match running.detached {
            Some(_) => "the command has ended, and its last output was not judged",
            None => "the command was killed, as nobody can watch it",
        };
        self.teller.note("killed", &format!("{why}; {what}"));
        self.outbox.give_up();
        running.is_unwatched = true;
        running.is_concluded = true;
    }

    /// Kills everything that the command is. The first reason is the one that counts.
    fn kill(&mut self, running: &mut Running, code: u8) {
        if running.killed.is_some() {
            return;
        }
        running.killed = Some(code);
        let survivors = running.tree.kill();
        self.expect_last();
        if survivors > 0 {
            let message = format!("{survivors} process(es) of the command could not be killed");
            self.teller.note("survivors", &message);
        }
    }

    /// What the dead command wrote last is read and looked at whoever reads what we write.
    fn expect_last(&self) {
        self.shown.iter().for_each(|shown| shown.expect_last());
    }

    /// Ends what the command left behind, without waiting for it here: a verdict may still come.
    fn empty(&self, tree: Tree) {
        let sender = self.sender.clone();
        self.runtime.spawn_blocking(move || {
            let left = tree.end(GRACE);
            drop(sender.blocking_send(Event::Emptied(left)));
        });
    }

    /// Tells the monitor of the end, once there is nothing more to tell it.
    fn conclude(&mut self, running: &mut Running) {
        let Some(code) = running.code else { return };
        if running.open == 0 && running.is_there.is_none() && running.detached.is_none() {
            running.detached = Some(Instant::now());
            self.outbox.detach(code);
            running.is_concluded |= running.is_unwatched;
        }
    }

    async fn signal(&mut self, signal: Signal, running: &mut Running) {
        match signal {
            Signal::CHILD => running.tree.reap_orphans(),
            Signal::WINCH => {
                if let Some(near) = &running.near {
                    copy_size(near.as_fd());
                }
            }
            Signal::TSTP => {
                running.tree.signal_group(Signal::TSTP);
                sleep(SUSPEND_DELAY).await;
                suspend(running);
            }
            // Whoever asks us to end while only the last verdicts are out does not want to wait for them.
            _ if running.detached.is_some() && signal != Signal::CONT => {
                running.is_concluded = true;
                running.is_hurried = true;
            }
            signal => running.tree.signal_group(signal),
        }
    }

    fn exit(&mut self, running: &Running) -> Exit {
        if running.has_terminal {
            // The command is dead and not reaped: its group is still there to be a member of.
            let _ = take_terminal_back(process::getpgrp(), running.tree.leader());
        }
        let code = running.code.unwrap_or(SIGNAL_BASE + Signal::KILL.as_raw());
        let code = running.killed.unwrap_or_else(|| u8::try_from(code).unwrap_or(u8::MAX));
        Exit::Command(code)
    }
}

/// Waits for the end of the command and says when it is stopped; does not reap it.
fn follow(tree: Tree, sender: &Sender<Event>) {
    let leader = WaitId::Pid(tree.leader());
    loop {
        let state = process::waitid(
            leader.clone(),
            WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT,
        );
        let state = match state {
            Err(rustix::io::Errno::INTR) => continue,
            state => state.ok().flatten(),
        };
        let event = match state {
            Some(state) if state.stopped() => {
                // Only the news of the stop is taken.
                let _ = process::waitid(leader.clone(), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
                Event::Stopped(state.stopping_signal().unwrap_or_default())
            }
            Some(state) => Event::Exited(match (state.exit_status(), state.terminating_signal()) {
                (Some(code), _) => code,
                (None, Some(signal)) => SIGNAL_BASE + signal,
                (None, None) => SIGNAL_BASE + Signal::KILL.as_raw(),
            }),
            None => Event::Exited(SIGNAL_BASE + Signal::KILL.as_raw()),
        };
        let is_last = matches!(event, Event::Exited(_));
        if sender.blocking_send(event).is_err() || is_last {
            return;
        }
    }
}

/// The command was stopped by somebody else than us.
fn stopped(signal: i32, running: &mut Running) {
    let wants_terminal = [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&signal);
    if wants_terminal && running.near.is_none() {
        if hand_over(running.tree.leader()) {
            running.has_terminal = true;
            running.tree.signal_group(Signal::CONT);
        }
    } else if running.has_terminal && signal == Signal::TSTP.as_raw() {
        // The key went to the command, as it has the terminal.
        suspend(running);
    }
}

/// Stops the command with all that comes from it, and us, until somebody continues us. Without a shell that would,
/// nothing is stopped.
fn suspend(running: &mut Running) {
    if !has_job_control() || running.code.is_some() {
        return;
    }
    running.tree.freeze();
    if let Some(raw) = &running.raw {
        raw.pause();
    }
    let _ = process::kill_current_process_group(Signal::STOP);
    if let Some(raw) = &running.raw {
        let _ = raw.again();
    }
    if let Some(near) = &running.near {
        copy_size(near.as_fd());
    }
    running.tree.thaw();
}

async fn until(limit: Option<Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}
