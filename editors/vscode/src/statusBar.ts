// The status bar: how many jobs work on this window's folders.

import * as vscode from "vscode";
import type { Jobs } from "./jobs";
import { isOver } from "./jobs";

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("pactify.jobs", vscode.StatusBarAlignment.Left);
  private readonly subscription: vscode.Disposable;
  private counting: Promise<void> | undefined;
  private isStale = false;

  constructor(private readonly jobs: Jobs) {
    this.item.name = "Pactify";
    this.item.command = "pactify.ui.jobs";
    this.show(0);
    const count = (): void => {
      this.isStale = true;
      this.counting ??= this.count().finally(() => (this.counting = undefined));
    };
    this.subscription = vscode.Disposable.from(
      jobs.onNews(count),
      vscode.workspace.onDidChangeWorkspaceFolders(count),
    );
    count();
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }

  /** One question under way at a time, and the last one after the last news. */
  private async count(): Promise<void> {
    while (this.isStale) {
      this.isStale = false;
      // What is wrong with the jobs is told where a person acts on them; the counter only counts.
      const jobs = await this.jobs.list().catch(() => []);
      this.show(jobs.filter((job) => !isOver(job)).length);
    }
  }

  private show(running: number): void {
    this.item.text = running === 0 ? "$(rocket) Pactify" : `$(sync~spin) Pactify: ${running} running`;
    this.item.tooltip = "The jobs of this workspace";
    this.item.show();
  }
}
