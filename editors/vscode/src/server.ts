// The language server: which program it is, and typed talk with it. One client serves all folders of the window.
//
// The server keeps no job: it can be restarted at any time, and so can this window. What it says is shaped as in
// protocol.ts; an error becomes a `Refusal`, with the code and the next step.

import { existsSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import {
  DidSaveTextDocumentNotification,
  LanguageClient,
  ResponseError,
  State,
  TransportKind,
} from "vscode-languageclient/node";
import type { ClientOptions, ErrorData, Notifications, Requests } from "./protocol";

/** What the server refused to do, and what the person can do about it. */
export class Refusal extends Error {
  constructor(readonly data: ErrorData) {
    super(data.message);
  }
}

/** The running server. */
export class Server implements vscode.Disposable {
  private readonly restarted = new vscode.EventEmitter<void>();
  private readonly watching: vscode.Disposable;
  /** Fires whenever the server is up again: what was known may be old. */
  readonly onRestarted = this.restarted.event;

  private constructor(private readonly client: LanguageClient) {
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) this.restarted.fire();
    });
    this.watching = vscode.workspace.onDidChangeTextDocument(({ document }) => {
      // After the client's own notification of the change.
      setTimeout(() => void this.tellIfSaved(document));
    });
  }

  static async start(context: vscode.ExtensionContext): Promise<Server> {
    const options: ClientOptions = { events: true, messages: false };
    const client = new LanguageClient(
      "pactify",
      "Pactify",
      { command: program(context), args: ["--stdio"], transport: TransportKind.stdio },
      { documentSelector: [{ scheme: "file" }], initializationOptions: { pactify: options } },
    );
    const server = new Server(client);
    await client.start();
    return server;
  }

  async request<M extends keyof Requests>(method: M, params: Requests[M]["params"]): Promise<Requests[M]["result"]> {
    try {
      return await this.client.sendRequest<Requests[M]["result"]>(method, params);
    } catch (error) {
      if (error instanceof ResponseError && isErrorData(error.data)) throw new Refusal(error.data);
      throw error;
    }
  }

  on<M extends keyof Notifications>(method: M, listen: (params: Notifications[M]) => void): vscode.Disposable {
    return this.client.onNotification(method, listen);
  }

  dispose(): void {
    this.watching.dispose();
    this.restarted.dispose();
    void this.client.dispose();
  }

  /**
   * A document loses its unsaved text without being saved when it is reverted, and changes without having any when its
   * file does. The protocol has one word for "this is what is on the disk".
   */
  private async tellIfSaved(document: vscode.TextDocument): Promise<void> {
    if (document.isDirty || document.isClosed || document.uri.scheme !== "file" || !this.client.isRunning()) return;
    const textDocument = this.client.code2ProtocolConverter.asTextDocumentIdentifier(document);
    await this.client.sendNotification(DidSaveTextDocumentNotification.type, { textDocument });
  }
}

/** The person's choice, else the server that came with this extension, else the one in PATH. */
function program(context: vscode.ExtensionContext): string {
  const chosen = vscode.workspace.getConfiguration("pactify.server").get<string>("path", "");
  if (chosen !== "") return chosen;
  const bundled = path.join(context.extensionPath, "server", "pactify-lsp");
  return existsSync(bundled) ? bundled : "pactify-lsp";
}

function isErrorData(data: unknown): data is ErrorData {
  return typeof data === "object" && data !== null && "code" in data && "next" in data && "message" in data;
}
