// Briefs as documents: a new one, and the templates that a repository keeps.

import * as path from "node:path";
import * as vscode from "vscode";
import { setting } from "./settings";

export const ENDING = ".brief.md";
const FORM = `# \${1:What to do, in one line}

\${2:What should be different afterwards, and why. Name files, functions and examples.}

## Done when

- \${3:the tests pass}
`;

/** Opens a new brief with this text, or with a form to fill in; says where. Nothing is written before it is saved. */
export async function write({ uri }: vscode.WorkspaceFolder, text: string): Promise<string> {
  const open = vscode.workspace.textDocuments.map((document) => path.posix.relative(uri.path, document.uri.path));
  const found = await vscode.workspace.fs.readDirectory(uri);
  const taken = new Set([...open, ...found.map(([name]) => name)]);
  let name = `task${ENDING}`;
  for (let number = 2; taken.has(name); number += 1) name = `task-${number}${ENDING}`;
  const file = vscode.Uri.joinPath(uri, name).with({ scheme: "untitled" });
  const editor = await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file));
  const start = new vscode.Position(0, 0);
  const form = new vscode.SnippetString(FORM);
  // A snippet's tabs become the editor's.
  const written = text === "" ? editor.insertSnippet(form) : editor.edit((edit) => edit.insert(start, text));
  if (!(await written)) throw new Error(`${name} was changed before the text was in it`);
  return file.toString();
}

/** Takes a brief that was never saved off the screen once its job has it. */
export async function close(document: vscode.TextDocument): Promise<void> {
  if (!document.isUntitled || vscode.window.activeTextEditor?.document !== document) return;
  await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
}

/** The templates of a folder, by name. Most repositories have none. */
export async function templates(folder: vscode.WorkspaceFolder): Promise<Map<string, vscode.Uri>> {
  const place = vscode.Uri.joinPath(folder.uri, setting("briefs.templates", folder.uri));
  const found = await Promise.resolve(vscode.workspace.fs.readDirectory(place)).catch(() => []);
  const names = found.flatMap(([name, type]) => (type === vscode.FileType.File && name.endsWith(".md") ? [name] : []));
  return new Map(names.map((name) => [name.replace(/(\.brief)?\.md$/, ""), vscode.Uri.joinPath(place, name)]));
}
