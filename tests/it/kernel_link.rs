//! The line to a kernel: what is sent arrives, what the kernel says is heard, also after a cut, and no end
//! of a kernel goes unnoticed.

use std::{path::Path, sync::Arc, time::Duration};

use jupyter_client::{
    DocPath, JupyterError, JupyterServer, Secret, ServerOptions,
    kernel::{Channel, ExecuteRequest, KernelError, KernelEvent, KernelLink, Message},
};
use jupyter_mcp_gateway::error::{ClientError, ErrorKind};
use tokio::{net::TcpListener, sync::mpsc::Receiver, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{eventually, jupyter::install_tls, lab, own_lab::OwnLab, proxy::Proxy};

const TIMEOUT: Duration = Duration::from_secs(60);

fn server(url: &str, token: &str) -> Arc<JupyterServer> {
    install_tls();
    let options = ServerOptions::new("lab", url.parse().unwrap(), Secret::new(token));
    Arc::new(JupyterServer::new(&options, Arc::new(())).unwrap())
}

fn shared_server() -> Arc<JupyterServer> {
    server(lab().url(), lab().token())
}

fn request(code: &str) -> ExecuteRequest {
    ExecuteRequest {
        code: code.to_owned(),
        silent: false,
        store_history: true,
        allow_stdin: true,
        stop_on_error: true,
    }
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// A kernel of a test's own with a link to it.
struct Kernel {
    server: Arc<JupyterServer>,
    link: KernelLink,
    events: Receiver<KernelEvent>,
}

impl Kernel {
    async fn start() -> Self {
        Self::behind(shared_server(), shared_server()).await
    }

    async fn through(proxy: &Proxy) -> Self {
        Self::behind(shared_server(), server(&proxy.url(), lab().token())).await
    }

    /// Linked by another way than that of the requests about it.
    async fn behind(server: Arc<JupyterServer>, way: Arc<JupyterServer>) -> Self {
        let kernel = server.start_kernel(None, None).await.unwrap();
        let (link, events) = KernelLink::connect(way, &kernel.id, &new_id()).await.unwrap();
        Self { server, link, events }
    }

    async fn execute(&self, code: &str) -> String {
        let id = new_id();
        self.link.execute(&id, &request(code)).await.unwrap();
        id
    }

    /// Waits until a new process behind the line is heard: what it says before Jupyter has found its way to it is missed.
    async fn wait_until_heard(&mut self) {
        for _ in 0..30 {
            let id = new_id();
            self.link.kernel_info(&id).await.unwrap();
            let answer =
                self.message(|message| message.channel == Channel::Iopub && message.parent_id.as_ref() == Some(&id));
            if timeout(Duration::from_secs(1), answer).await.is_ok() {
                return;
            }
        }
        panic!("the new process is not heard");
    }

    async fn next(&mut self) -> KernelEvent {
        let event = timeout(TIMEOUT, self.events.recv()).await;
        event.expect("an event in time").expect("a link")
    }

    /// The next message of a kind, whatever comes before it.
    async fn message(&mut self, wanted: impl Fn(&Message) -> bool) -> Message {
        loop {
            match self.next().await {
                KernelEvent::Message(message) if wanted(&message) => return message,
                KernelEvent::Gone(error) => panic!("the kernel is gone: {error}"),
                _ => {}
            }
        }
    }

    async fn message_of_type(&mut self, msg_type: &str) -> Message {
        self.message(|message| message.msg_type == msg_type).await
    }

    /// The next event that is no message.
    async fn incident(&mut self) -> KernelEvent {
        loop {
            match self.next().await {
                KernelEvent::Message(_) => {}
                incident => return incident,
            }
        }
    }

    /// Everything about a request, until it is answered and the kernel is idle again.
    async fn all_about(&mut self, id: &str) -> Vec<Message> {
        let (mut about, mut replied, mut idle) = (Vec::new(), false, false);
        while !(replied && idle) {
            let message = self.message(|message| message.parent_id.as_deref() == Some(id)).await;
            replied |= message.msg_type == "execute_reply";
            idle |= message.msg_type == "status" && message.content["execution_state"] == "idle";
            about.push(message);
        }
        about
    }

    async fn run(&mut self, code: &str) -> Vec<Message> {
        let id = self.execute(code).await;
        self.all_about(&id).await
    }

    async fn end(self) {
        let id = self.link.kernel_id().to_owned();
        self.link.close();
        self.server.shutdown_kernel(&id).await.unwrap();
    }
}

fn find<'a>(messages: &'a [Message], msg_type: &str) -> &'a Message {
    let found = messages.iter().find(|message| message.msg_type == msg_type);
    found.unwrap_or_else(|| panic!("no {msg_type} in {messages:?}"))
}

fn printed(messages: &[Message]) -> String {
    let streams = messages.iter().filter(|message| message.msg_type == "stream");
    streams
        .map(|message| message.content["text"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_is_run_and_its_result_reply_and_idleness_are_heard() {
    let mut kernel = Kernel::start().await;
    let about = kernel.run("print('hi')\n1 + 1").await;
    assert_eq!(printed(&about), "hi\n");
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "2");
    let reply = find(&about, "execute_reply");
    assert_eq!(
        (reply.channel, &reply.content["status"]),
        (Channel::Shell, &"ok".into())
    );
    assert_eq!(reply.parent_session.as_deref(), Some(kernel.link.session_id()));
    assert!(kernel.link.is_connected());
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kernel_info_is_a_barrier_behind_what_was_sent_before() {
    let mut kernel = Kernel::start().await;
    let first = kernel.execute("import time; time.sleep(0.5)").await;
    let barrier = new_id();
    kernel.link.kernel_info(&barrier).await.unwrap();
    let reply = kernel.message(|message| message.channel == Channel::Shell).await;
    assert_eq!(reply.parent_id, Some(first));
    let reply = kernel.message(|message| message.channel == Channel::Shell).await;
    assert_eq!(
        (reply.msg_type.as_str(), reply.parent_id),
        ("kernel_info_reply", Some(barrier))
    );
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_of_the_code_is_answered() {
    let mut kernel = Kernel::start().await;
    answers_questions(&mut kernel).await;
    kernel.end().await;
}

async fn answers_questions(kernel: &mut Kernel) {
    let id = kernel
        .execute("from getpass import getpass; len(getpass('Secret? '))")
        .await;
    let question = kernel.message_of_type("input_request").await;
    assert_eq!(question.channel, Channel::Stdin);
    assert_eq!(question.content["prompt"], "Secret? ");
    assert_eq!(question.content["password"], true);
    kernel.link.reply_input(&question.header, "hünter2").await.unwrap();
    let about = kernel.all_about(&id).await;
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tight_loop_is_interrupted() {
    let mut kernel = Kernel::start().await;
    let id = kernel.execute("print('go', flush=True)\nwhile True: pass").await;
    kernel.message_of_type("stream").await;
    kernel.server.interrupt_kernel(kernel.link.kernel_id()).await.unwrap();
    let about = kernel.all_about(&id).await;
    assert_eq!(find(&about, "error").content["ename"], "KeyboardInterrupt");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_the_link_stays_usable() {
    let mut kernel = Kernel::start().await;
    kernel.run("x = 1").await;
    kernel.server.restart_kernel(kernel.link.kernel_id()).await.unwrap();
    // Jupyter does not always get to say so.
    let _ = timeout(Duration::from_secs(20), kernel.message(Message::tells_end_of_process)).await;
    kernel.wait_until_heard().await;
    let about = kernel.run("x").await;
    assert_eq!(find(&about, "error").content["ename"], "NameError");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_death_of_a_kernel_its_successor_answers() {
    let mut kernel = Kernel::start().await;
    kernel.execute("import os; os._exit(1)").await;
    kernel.message(Message::tells_end_of_process).await;
    // One that dies soon after its start is given other ports, to which Jupyter turns only for a new line.
    kernel.link.renew();
    assert_eq!(kernel.incident().await, KernelEvent::Disconnected);
    assert_eq!(kernel.incident().await, KernelEvent::Reconnected);
    kernel.wait_until_heard().await;
    assert_eq!(printed(&kernel.run("print('again')").await), "again\n");
    kernel.end().await;
}

/// Code that says so when it began, ends when it may, and then leaves a mark.
fn code_between(begin: &Path, end: &Path) -> String {
    let (begin, end) = (begin.display(), end.display());
    format!(
        "import os, time\nprint('before', flush=True)\nwhile not os.path.exists('{begin}'): time.sleep(0.01)\nprint('after')\nopen('{end}', 'w').close()\n6 * 7"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_kernel_says_while_the_line_is_cut_arrives_later() {
    let (proxy, folder) = (Proxy::to(lab().address()).await, lab().folder());
    let mut kernel = Kernel::through(&proxy).await;
    let id = kernel
        .execute(&code_between(&folder.disk.join("go"), &folder.disk.join("done")))
        .await;
    kernel.message_of_type("stream").await;
    proxy.refuse(true);
    proxy.cut();
    assert_eq!(kernel.incident().await, KernelEvent::Disconnected);
    assert!(!kernel.link.is_connected());
    let refused = kernel.link.execute("never", &request("1")).await.unwrap_err();
    assert!(matches!(refused, KernelError::Reconnecting { .. }), "{refused}");
    // What a kernel says before Jupyter has noticed the cut goes to a line that leads nowhere.
    eventually("Jupyter has noticed the cut", async || {
        let kernel = kernel.server.kernel(kernel.link.kernel_id()).await.unwrap()?;
        (kernel.connections == Some(0)).then_some(())
    })
    .await;
    folder.write("go", "");
    eventually("the code has ended", async || folder.has("done").then_some(())).await;
    // The reply follows the file; the kernel's next idle state is known to the server.
    eventually("the kernel is idle", async || {
        let kernel = kernel.server.kernel(kernel.link.kernel_id()).await.unwrap()?;
        (kernel.execution_state == "idle").then_some(())
    })
    .await;
    proxy.refuse(false);
    assert_eq!(kernel.incident().await, KernelEvent::Reconnected);
    let about = kernel.all_about(&id).await;
    assert_eq!(printed(&about), "after\n");
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "42");
    assert_eq!(printed(&kernel.run("print('new')").await), "new\n");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_that_was_shut_down_while_the_line_was_cut_is_gone() {
    let proxy = Proxy::to(lab().address()).await;
    let mut kernel = Kernel::through(&proxy).await;
    kernel.run("1").await;
    proxy.refuse(true);
    proxy.cut();
    assert_eq!(kernel.incident().await, KernelEvent::Disconnected);
    kernel.server.shutdown_kernel(kernel.link.kernel_id()).await.unwrap();
    proxy.refuse(false);
    is_gone(kernel).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_that_somebody_shut_down_is_gone() {
    let mut kernel = Kernel::start().await;
    kernel.run("1").await;
    kernel.server.shutdown_kernel(kernel.link.kernel_id()).await.unwrap();
    is_gone(kernel).await;
}

async fn is_gone(mut kernel: Kernel) {
    let incident = kernel.incident().await;
    assert!(
        matches!(incident, KernelEvent::Gone(JupyterError::NoKernel { .. })),
        "{incident:?}"
    );
    assert!(kernel.events.recv().await.is_none(), "nothing follows");
    let refused = kernel.link.execute("never", &request("1")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_dead_without_a_word_is_noticed_and_replaced() {
    let proxy = Proxy::to(lab().address()).await;
    let mut kernel = Kernel::through(&proxy).await;
    kernel.run("x = 1").await;
    proxy.hold(true);
    assert_eq!(kernel.incident().await, KernelEvent::Disconnected);
    proxy.hold(false);
    assert_eq!(kernel.incident().await, KernelEvent::Reconnected);
    assert_eq!(printed(&kernel.run("print(x)").await), "1\n");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_waits_for_its_listener_and_holds_up_nothing_that_is_sent() {
    let mut kernel = Kernel::start().await;
    // Printed text is thinned out by Jupyter itself; displays are not.
    let flood = "for i in range(50): display({'text/plain': str(i) + 'x' * 1_000_000}, raw=True)\nwhile True: pass";
    let id = kernel
        .execute(&format!("from IPython.display import display\n{flood}"))
        .await;
    eventually("the queue is full", async || (kernel.events.len() >= 8).then_some(())).await;
    let barrier = new_id();
    let sent = timeout(Duration::from_secs(5), kernel.link.kernel_info(&barrier)).await;
    sent.expect("not held up").unwrap();
    // Long enough for all of them to arrive, if they were read ahead.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(kernel.events.len() < 32, "{} events wait", kernel.events.len());
    // The loop is reached once the last display was made.
    let mut about = Vec::new();
    while about.len() < 50 {
        about.push(kernel.message_of_type("display_data").await);
        // A listener that is slower than the kernel.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (index, message) in about.iter().enumerate() {
        let text = message.content["data"]["text/plain"].as_str().unwrap();
        assert!(text.starts_with(&format!("{index}x")), "in order and none missing");
    }
    kernel.server.interrupt_kernel(kernel.link.kernel_id()).await.unwrap();
    let about = kernel.all_about(&id).await;
    assert_eq!(find(&about, "error").content["ename"], "KeyboardInterrupt");
    kernel
        .message(|message| message.parent_id.as_ref() == Some(&barrier))
        .await;
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_who_is_behind_can_speak_before_it_hears_of_the_return() {
    let proxy = Proxy::to(lab().address()).await;
    let mut kernel = Kernel::through(&proxy).await;
    kernel.execute("for i in range(400): display(i)").await;
    eventually("the queue is full", async || (kernel.events.len() == 256).then_some(())).await;
    proxy.cut();
    let state = async |connected| {
        eventually("the line changes", async || {
            (kernel.link.is_connected() == connected).then_some(())
        })
        .await;
    };
    state(false).await;
    let refused = kernel.link.execute("never", &request("1")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Upstream, "{refused}");
    // There is room for one event now: for the word that the line was cut, but not for that of its return.
    kernel.events.recv().await.unwrap();
    state(true).await;
    let id = new_id();
    let sent = timeout(Duration::from_secs(5), kernel.link.execute(&id, &request("6 * 7"))).await;
    sent.expect("not held up").unwrap();
    assert_eq!(kernel.incident().await, KernelEvent::Disconnected);
    assert_eq!(kernel.incident().await, KernelEvent::Reconnected);
    let about = kernel.all_about(&id).await;
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "42");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_outputs_pass_and_requests_that_are_too_large_are_refused() {
    let mut kernel = Kernel::start().await;
    let about = kernel
        .run("from IPython.display import display\ndisplay({'text/plain': 'y' * 20_000_000}, raw=True)")
        .await;
    let text = find(&about, "display_data").content["data"]["text/plain"]
        .as_str()
        .unwrap();
    assert_eq!(text.len(), 20_000_000);
    let code = format!("'{}'", "z".repeat(10 * 1024 * 1024));
    let refused = kernel.link.execute("never", &request(&code)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    let code = format!("len('{}')", "z".repeat(8 * 1024 * 1024));
    let about = kernel.run(&code).await;
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "8388608");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_is_not_unicode_is_heard_all_the_same() {
    let mut kernel = Kernel::start().await;
    let about = kernel.run("print('a\\udcffb ✓')").await;
    assert_eq!(printed(&about), "a\u{fffd}b ✓\n");
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_only_the_older_framing_is_understood() {
    let lab = OwnLab::start(&["--ZMQChannelsWebsocketConnection.kernel_ws_protocol="]).await;
    let server = server(&lab.url(), lab.token());
    let mut kernel = Kernel::behind(Arc::clone(&server), server).await;
    let about = kernel.run("print('ä\\udcff')\n1 + 1").await;
    assert_eq!(printed(&about), "ä\u{fffd}\n");
    assert_eq!(find(&about, "execute_result").content["data"]["text/plain"], "2");
    answers_questions(&mut kernel).await;
    let code = "get_ipython().kernel.session.send(get_ipython().kernel.iopub_socket, 'comm_msg', {}, get_ipython().kernel.get_parent(), buffers=[b'\\x00\\xff'])";
    let about = kernel.run(code).await;
    assert_eq!(find(&about, "comm_msg").buffers, [&b"\x00\xff"[..]]);
    kernel.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_that_does_not_exist_cannot_be_linked() {
    let server = shared_server();
    let unknown = new_id();
    assert_eq!(server.kernel(&unknown).await, Ok(None));
    let error = KernelLink::connect(server, &unknown, &new_id()).await.err().unwrap();
    assert!(matches!(error, JupyterError::NoKernel { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_link_ends_its_events_and_the_kernel_runs_on() {
    let mut kernel = Kernel::start().await;
    kernel.run("x = 5").await;
    let (server, id) = (Arc::clone(&kernel.server), kernel.link.kernel_id().to_owned());
    let clone = kernel.link.clone();
    kernel.link.close();
    while timeout(TIMEOUT, kernel.events.recv()).await.unwrap().is_some() {}
    let refused = clone.execute("never", &request("1")).await.unwrap_err();
    assert_eq!(refused, KernelError::Closed { kernel: id.clone() });
    let (link, events) = KernelLink::connect(Arc::clone(&server), &id, &new_id()).await.unwrap();
    let mut again = Kernel { server, link, events };
    assert_eq!(printed(&again.run("print(x)").await), "5\n");
    again.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notebook_keeps_one_session_that_can_be_renamed_and_given_another_kernel() {
    let (server, folder) = (shared_server(), lab().folder());
    let path = DocPath::parse(&folder.notebook("deep/n.ipynb")).unwrap();
    assert_eq!(server.session_of(&path).await, Ok(None));
    let error = server.start_session(&path, Some("cobol")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("python3"), "{error}");
    let session = server.start_session(&path, None).await.unwrap();
    let adopted = server.start_session(&path, Some("python3")).await.unwrap();
    assert_eq!((&adopted.id, &adopted.kernel.id), (&session.id, &session.kernel.id));
    let kernel = &session.kernel;
    let (link, events) = KernelLink::connect(Arc::clone(&server), &kernel.id, &new_id())
        .await
        .unwrap();
    let mut linked = Kernel {
        server: Arc::clone(&server),
        link,
        events,
    };
    let printed = printed(&linked.run("import os; print(os.path.basename(os.getcwd()))").await);
    assert_eq!(printed, "deep\n", "it runs where the notebook is");
    let moved = DocPath::parse(&folder.path("deep/moved.ipynb")).unwrap();
    server.rename_session(&session.id, &moved).await.unwrap();
    assert_eq!(server.session_of(&path).await, Ok(None));
    let changed = server.change_kernel(&session.id, "python3").await.unwrap();
    assert_ne!(changed.kernel.id, kernel.id);
    assert_eq!(server.kernel_of(&moved).await.unwrap().unwrap().id, changed.kernel.id);
    let error = server.change_kernel(&session.id, "cobol").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let error = server.start_kernel(Some("cobol"), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    server.shutdown_kernel(&changed.kernel.id).await.unwrap();
    server.shutdown_kernel(&changed.kernel.id).await.unwrap();
}

#[tokio::test]
async fn a_server_is_asked_to_start_few_kernels_at_a_time() {
    // Never answers, and lets go of the first one only.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = server(&format!("http://{}", listener.local_addr().unwrap()), "");
    let starts = (0..6).map(|_| {
        let server = Arc::clone(&server);
        AbortOnDropHandle::new(tokio::spawn(async move { server.start_kernel(None, None).await }))
    });
    let _starts: Vec<_> = starts.collect();
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(timeout(TIMEOUT, listener.accept()).await.unwrap().unwrap());
    }
    let another = timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(another.is_err(), "the others wait");
    asked.remove(0);
    timeout(TIMEOUT, listener.accept()).await.unwrap().unwrap();
}
