// The language server: which program it is, and typed talk with it. One client serves all folders of the window.
// The server keeps no job: it can be restarted at any time, and so can this window. What it says is shaped as in
// protocol.ts; an error becomes a `Refusal`, with the code and the next step.

import { existsSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import * as lsp from "vscode-languageclient/node";
import type { ClientOptions, ErrorData, Notifications, Requests } from "./protocol";
import { setting } from "./settings";
import { plain } from "./words";

export class Refusal extends Error {
  constructor(readonly data: ErrorData) {
    super(plain(data.message));
  }
}

/** The workspace is not trusted: nothing is started in it. */
export class Untrusted extends Error {
  override readonly message = "this workspace is in Restricted Mode: a job would run an agent on its repository";
}

export class Server {
  readonly log = vscode.window.createOutputChannel("Pactify", { log: true });
  private readonly started = new vscode.EventEmitter<void>();
  /** Fires whenever the server is up again: what was known may be old. */
  readonly onStarted = this.started.event;
  private readonly progressed = new vscode.EventEmitter<void>();
  /** Fires when a job got on, a few times a second at most, however much it does. */
  readonly onProgress = this.progressed.event;
  private readonly executable: Executable = { command: "", args: ["--stdio"], transport: lsp.TransportKind.stdio };
  private readonly client: lsp.LanguageClient;
  private starting: Promise<void> | undefined;
  /** Whether the program has to be looked for again. */
  private isStale = false;

  constructor(private readonly context: vscode.ExtensionContext) {
    // The jobs view, the status bar and toasts of ours show it: the client's own display never begins.
    const handleWorkDoneProgress: lsp.Middleware["handleWorkDoneProgress"] = (token, params, next) => {
      if (params.kind !== "begin") next(token, params);
      this.progressed.fire();
    };
    this.client = new lsp.LanguageClient("pactify", "Pactify", this.executable, {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: { pactify: { changes: true, messages: false } satisfies ClientOptions },
      middleware: { handleWorkDoneProgress },
      outputChannel: this.log,
      revealOutputChannelOn: lsp.RevealOutputChannelOn.Never,
    });
    context.subscriptions.push(
      this.client,
      this.log,
      this.client.onDidChangeState(({ newState }) => {
        tellMenus("state", lsp.State[newState].toLowerCase());
        if (newState === lsp.State.Running) this.started.fire();
      }),
      // After the client's own notification of the change.
      vscode.workspace.onDidChangeTextDocument(({ document }) => setTimeout(() => void this.tellIfSaved(document))),
    );
  }

  /** Starts it, once; a start that failed can be tried again. */
  readonly start = (): Promise<void> => (this.starting ??= this.launch());

  /** Starts it anew. However often this is asked for meanwhile, it is started once more at most. */
  restart(): Promise<void> {
    this.isStale = true;
    const before = this.starting?.catch(() => undefined);
    return (this.starting = Promise.resolve(before).then(() => (this.isStale ? this.launch() : undefined)));
  }

  async request<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    await this.start();
    try {
      return await this.client.sendRequest<Requests[M]["result"]>(method, params);
    } catch (error) {
      if (error instanceof lsp.ResponseError && isErrorData(error.data)) throw new Refusal(error.data);
      throw error;
    }
  }

  readonly on = <M extends keyof Notifications>(method: M, heard: (of: Notifications[M]) => void): vscode.Disposable =>
    this.client.onNotification(method, heard);

  private async launch(): Promise<void> {
    this.isStale = false;
    const bundled = path.join(this.context.extensionPath, "server", "pactify-lsp");
    // The person names it, else this extension (which brings one), else PATH.
    const other = existsSync(bundled) ? [bundled, "this extension"] : ["pactify-lsp", "PATH"];
    const [command = "", from] = setting("server.path") === "" ? other : [setting("server.path"), "the setting"];
    this.executable.command = command;
    try {
      if (!vscode.workspace.isTrusted) throw new Untrusted();
      this.log.info(`starting ${command}, named by ${from}`);
      // Its own two seconds are few on a busy machine.
      if (this.client.isRunning()) await this.client.stop(20_000).catch((late: unknown) => this.log.warn(String(late)));
      await this.client.start();
    } catch (error) {
      tellMenus("state", "stopped");
      this.starting = undefined;
      if (error instanceof Untrusted) throw error;
      const next = "Set `pactify.server.path` to a pactify-lsp that runs; Show Log has more.";
      throw new Error(`the server ${command} did not start: ${String(error)}. ${next}`, { cause: error });
    }
  }

  /** The protocol's one word for "this is what is on the disk" fits reverted documents and changed files, too. */
  private async tellIfSaved(document: vscode.TextDocument): Promise<void> {
    if (document.isDirty || document.isClosed || document.uri.scheme !== "file" || !this.client.isRunning()) return;
    const textDocument = this.client.code2ProtocolConverter.asTextDocumentIdentifier(document);
    await this.client.sendNotification(lsp.DidSaveTextDocumentNotification.type, { textDocument });
  }
}

const isErrorData = (data: unknown): data is ErrorData =>
  typeof data === "object" && data !== null && "code" in data && "next" in data && "message" in data;

/** What `when` clauses ask for, below `pactify`. */
export const tellMenus = (key: string, value: unknown): void =>
  void vscode.commands.executeCommand("setContext", `pactify.${key}`, value);
