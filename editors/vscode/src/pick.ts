// A choice among items that can change while the person types.

import * as vscode from "vscode";

/** What is asked, and what there is to choose for what is typed; in a form, all steps but the first have a way back. */
type Asked<T> = { title: string; placeholder: string; items: (typed: string) => T[] } & Partial<More>;
type More = { value: string; step: number; totalSteps: number };
type Answer<T> = { item: T; typed: string } | "back" | undefined;

export async function pick<T extends vscode.QuickPickItem>({ items, ...look }: Asked<T>): Promise<Answer<T>> {
  const box = vscode.window.createQuickPick<T>();
  return new Promise<Answer<T>>((resolve) => {
    Object.assign(box, look, { ignoreFocusOut: true, items: items(look.value ?? "") });
    if ((look.step ?? 1) > 1) box.buttons = [vscode.QuickInputButtons.Back];
    box.onDidChangeValue((typed) => (box.items = items(typed.trim())));
    // The first answer counts; what was chosen hides the box.
    box.onDidTriggerButton(() => resolve("back"));
    box.onDidAccept(() => box.selectedItems[0] && resolve({ item: box.selectedItems[0], typed: box.value.trim() }));
    box.onDidHide(() => resolve(undefined));
    box.show();
  }).finally(() => box.dispose());
}
