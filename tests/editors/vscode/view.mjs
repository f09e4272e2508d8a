// The jobs view by mouse, and without one: check boxes of a file and of a part, and their apply. All of it in the themes
// of high contrast, where whatever the view shows has to be readable; in the others, the colours that we choose.

import fs from "node:fs";
import path from "node:path";
import { given, hands, shoot, step, toggleTheme, withVsCode } from "./browser.mjs";

const workspace = given("PACTIFY_WORKSPACE");
const file = (name) => path.join(workspace, name);
const read = (name) => (fs.existsSync(file(name)) ? fs.readFileSync(file(name), "utf8") : undefined);
const check = (is, what) => {
  if (!is) throw new Error(what);
};

/** The contrast that the Web Content Accessibility Guidelines ask of text, and of icons. */
const READABLE = 4.5;
const VISIBLE = 3;

const numbers = (changes) =>
  Array.from({ length: 30 }, (_, at) => `${changes[at + 1] ?? `line ${at + 1}`}\n`).join("");
const steps = [
  { write: { path: "numbers.txt", content: numbers({ 3: "three", 20: "twenty" }) } },
  { write: { path: "other.txt", content: "other\n" } },
  { write: { path: "keys.txt", content: "keys\n" } },
  { write: { path: ".vscode/tasks.json", content: "{}\n" } },
];
const brief = ["Change some", "", "```agent", ...steps.map((one) => JSON.stringify(one)), "```", ""].join("\n");

/**
 * In the page: every text and icon below `within`, with how far its colour is from what is behind it, and how far it would
 * be (`pure`) if VS Code did not dim it.
 */
function contrasts(within) {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) =>
    0.2126 * channel(red / 255) + 0.7152 * channel(green / 255) + 0.0722 * channel(blue / 255);
  const parse = (color) => {
    const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number);
    return [[red, green, blue], alpha];
  };
  const over = (upper, alpha, lower) => upper.map((value, at) => value * alpha + lower[at] * (1 - alpha));
  const parents = (element) => (element === null ? [] : [element, ...parents(element.parentElement)]);
  const behind = (element) =>
    parents(element).reduceRight((lower, one) => over(...parse(getComputedStyle(one).backgroundColor), lower), [0, 0, 0]);
  const isShown = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && getComputedStyle(element).visibility === "visible";
  };
  const found = [];
  for (const element of document.querySelectorAll(`${within} *`)) {
    const text = [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
    const words = text.map(({ textContent }) => textContent.trim()).join("");
    const isGlyph = getComputedStyle(element, "::before").content !== "none";
    const isIcon = isGlyph && /\bcodicon-[a-z]/.test(String(element.className));
    if ((words === "" && !isIcon) || !isShown(element)) continue;
    const style = getComputedStyle(element, isIcon ? "::before" : undefined);
    const [color, alpha] = parse(style.color);
    const opacity = parents(element).reduce((product, one) => product * Number(getComputedStyle(one).opacity), alpha);
    const back = behind(element);
    const distance = (alpha) => {
      const [one, other] = [luminance(over(color, alpha, back)), luminance(back)];
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    };
    const what = words || String(element.className);
    found.push({ what, isIcon: words === "", ratio: distance(opacity), pure: distance(alpha) });
  }
  return found;
}

fs.writeFileSync(file("some.brief.md"), brief);
await withVsCode({
  workspace,
  extensions: given("PACTIFY_EXTENSIONS"),
  machine: { "pactify.server.path": given("PACTIFY_LSP") },
  // One after the other is shown by the one command that goes from dark to light and back.
  settings: {
    "workbench.colorTheme": "Default High Contrast",
    "workbench.preferredHighContrastLightColorTheme": "Default High Contrast Light",
    "workbench.preferredHighContrastColorTheme": "Dark Modern",
    "workbench.preferredLightColorTheme": "Light Modern",
  },
  use: async (page, url) => {
    const { row, pick, choose, toast, button, dialog, command, open, press, showJobs } = hands(page);
    const box = (text) => row(text).getByRole("checkbox").first();
    const isChecked = async (text) => (await box(text).getAttribute("aria-checked")) === "true";
    /** Clicks a box, and waits until it stays so: VS Code shows a click at once, and then what our view says of it. */
    const set = async (text, is) => {
      const isSo = async () => (await isChecked(text)) === is;
      // Only a click that nothing heard is made again: one that was taken back has to fail.
      for (let look = 0; !(await isSo()); look += 1) {
        if (look % 30 === 0) await box(text).click();
        await page.waitForTimeout(100);
      }
      for (let same = 0; same < 10; same = (await isSo()) ? same + 1 : 0) await page.waitForTimeout(100);
    };

    await page.goto(url);
    await step("a job's files and parts are in the view", 120, async () => {
      await page.locator(".monaco-workbench.hc-black .statusbar").waitFor();
      await showJobs();
      await button(page.locator(".sidebar .welcome-view"), "Delegate a Task").waitFor();
      await open("some.brief.md");
      // Pressed twice, it would be two jobs.
      await press(page.locator(".codelens-decoration a", { hasText: "Delegate" }).first(), row("Change some"), 45_000);
      await toast("changed 4 files").waitFor();
      await page.keyboard.press("Escape");
      await press(row("Change some"), row("numbers.txt"));
      await press(row("numbers.txt").locator(".monaco-tl-twistie"), row("three"));
    });
    await step("a file and a part are checked by mouse", 60, async () => {
      await set("three", true);
      await row("1 chosen").waitFor();
      await set("other.txt", true);
      check((await isChecked("three")) && (await isChecked("other.txt")), "a click did not check its box");
      check(!(await isChecked("twenty")) && !(await isChecked("tasks.json")), "a click checked another box");
    });
    await step("and unchecked", 60, async () => {
      await set("other.txt", false);
      check(await isChecked("three"), "a click took another choice back");
      await set("other.txt", true);
    });
    await shoot(page, "vscode-checked");
    await step("and can be applied from the palette, too", 60, async () => {
      await page.keyboard.press("F1");
      await page.locator(".quick-input-widget:visible input.input").fill(">Pactify: Apply Selected");
      await pick("Pactify: Apply Selected").waitFor();
      await page.keyboard.press("Escape");
    });
    await step("what is checked is applied, from the job's row", 60, async () => {
      await row("Change some").hover();
      await press(row("Change some").locator('.action-label[aria-label*="Apply Selected"]'), dialog("Apply 2 files"));
      check(read("other.txt") === undefined, "it was written before it was confirmed");
      const yes = dialog("Apply 2 files").locator(".monaco-button", { hasText: /^Apply Selected$/ });
      await press(yes, toast("applied 2 files"));
      await row("· applied").waitFor();
      await row(/^other.txt *applied/).waitFor();
      check(read("numbers.txt") === numbers({ 3: "three" }), "not the part that was checked");
      check(read("other.txt") === "other\n" && read(".vscode/tasks.json") === undefined, "not what was checked");
    });

    await step("in the diff of all files a key applies the part at the cursor", 90, async () => {
      await command("Preview Changes");
      await choose("Change some");
      const line = page.locator(".multiDiffEntry .view-line", { hasText: /^twenty$/ }).last();
      // That the key is ours is known a moment after the cursor is there.
      const key = { click: (options) => line.click(options).then(() => page.keyboard.press("Control+Enter")) };
      await press(key, toast("applied 1 file"));
      check(read("numbers.txt") === numbers({ 3: "three", 20: "twenty" }), "not the part at the cursor");
    });

    await step("without a mouse, a file is found, opened, checked and applied", 180, async () => {
      await command("Show Jobs");
      await page.locator(".sidebar .pane-body .monaco-list:focus-within").first().waitFor({ state: "attached" });
      const isAt = () => page.locator(".sidebar .monaco-list-row.focused", { hasText: "keys.txt" }).isVisible();
      for (let look = 0; !(await isAt()); look += 1) {
        await page.keyboard.press(look % 20 === 0 ? "Home" : "ArrowDown");
        await page.waitForTimeout(300);
      }
      await page.keyboard.press("Enter");
      await page.locator(".tab.active", { hasText: "keys.txt (Change some)" }).waitFor();
      // Rows are drawn anew while VS Code hears of a check: a box that is gone loses the focus.
      for (let look = 0; !(await isChecked("keys.txt")); look += 1) {
        if (look % 30 === 0) {
          await box("keys.txt").focus();
          check(await box("keys.txt").evaluate(({ tabIndex }) => tabIndex >= 0), "Tab does not reach a box");
          await page.keyboard.press("Space");
        }
        await page.waitForTimeout(100);
      }
      await command("Apply Selected");
      await choose("Change some");
      await dialog("Apply 1 file").waitFor();
      check(read("keys.txt") === undefined, "it was written before it was confirmed");
      for (let look = 0; read("keys.txt") !== "keys\n"; look += 1) {
        if (look % 30 === 0 && (await dialog("Apply 1 file").isVisible())) await page.keyboard.press("Enter");
        await page.waitForTimeout(100);
      }
      check(read(".vscode/tasks.json") === undefined, "not what was checked");
      await row(/^keys.txt *applied/).waitFor();
    });

    for (const mark of ["hc-black", "hc-light", "vs-dark", "vs"]) {
      await step(`everything in the view can be read in “${mark}”`, 90, async () => {
        if (mark !== "hc-black") await toggleTheme(page, mark);
        await row("numbers.txt").waitFor();
        await shoot(page, `vscode-${mark}`);
        const seen = await page.evaluate(contrasts, ".sidebar .pane-body .monaco-list-row");
        const isSeen = (words) => seen.some(({ what }) => what.includes(words));
        check(isSeen("acts by itself") && isSeen("· applied"), `not all is there: ${JSON.stringify(seen)}`);
        // The other themes dim by themselves, and have their own colours for icons: only the words' are ours.
        const isFaint = mark.startsWith("hc-")
          ? ({ isIcon, ratio }) => ratio < (isIcon ? VISIBLE : READABLE)
          : ({ isIcon, pure }) => !isIcon && pure < VISIBLE;
        const faint = seen.filter(isFaint);
        check(faint.length === 0, `too faint: ${JSON.stringify(faint)}`);
        const ratios = seen.map(({ ratio }) => ratio);
        console.log(`# ${seen.length} texts and icons, the faintest with a contrast of ${Math.min(...ratios).toFixed(1)}`);
      });
    }
  },
});
