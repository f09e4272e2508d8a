// What a person is told and asked. VS Code makes a link, even one that runs a command, of each `[…](…)` in it, and
// titles, paths and errors are partly an agent's words: they get there only from here, without links.

import * as vscode from "vscode";
import { plain } from "./words";

type Show = "showInformationMessage" | "showWarningMessage" | "showErrorMessage";
type Work<T> = (report: (message: string) => void, cancellation: vscode.CancellationToken) => Thenable<T>;

/** With details it is modal. They are never cut: they may be what is allowed. */
const message = (show: Show) => (text: string, buttons: string[] = [], details?: string[]) => {
  const detail = plain((details ?? []).filter(Boolean).join("\n\n"), Infinity);
  return vscode.window[show](plain(text), { modal: details !== undefined, detail }, ...buttons);
};
export const info = message("showInformationMessage");
export const warn = message("showWarningMessage");
export const error = message("showErrorMessage");

export const line = (title: string, prompt: string, more: vscode.InputBoxOptions = {}): Thenable<string | undefined> =>
  vscode.window.showInputBox({ ignoreFocusOut: true, ...more, title: plain(title), prompt: plain(prompt) });

export function progress<T>(title: string, work: Work<T>, cancellable = true): Thenable<T> {
  const options = { location: vscode.ProgressLocation.Notification, title: plain(title), cancellable };
  return vscode.window.withProgress(options, (progress, cancellation) =>
    work((message) => progress.report({ message: plain(message) }), cancellation),
  );
}
