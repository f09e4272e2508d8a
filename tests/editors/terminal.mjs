// Draws screens of a terminal as tmux gives them: xterm.js in a browser. `node terminal.mjs LIST.json`.

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { chromium } = require(process.env.PACTIFY_PLAYWRIGHT);
const xterm = process.env.PACTIFY_XTERM;
const style = fs.readFileSync(path.join(xterm, "css/xterm.css"), "utf8");
const code = fs.readFileSync(path.join(xterm, "lib/xterm.js"), "utf8");
// Neovim's own backgrounds, so that its edges don't show.
const themes = {
  dark: { background: "#14161b", foreground: "#e0e2ea", cursor: "#e0e2ea" },
  light: { background: "#e0e2ea", foreground: "#14161b", cursor: "#14161b" },
};

const browser = await chromium.launchPersistentContext(process.env.PACTIFY_UI_ROOT, {
  executablePath: process.env.PACTIFY_CHROMIUM,
  headless: true,
  viewport: { width: 1800, height: 1200 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
try {
  for (const { screen, file, light } of JSON.parse(fs.readFileSync(process.argv[2], "utf8"))) {
    const [columns, rows, x, y] = screen.place;
    const text = `${screen.text.replace(/\n$/, "").split("\n").join("\r\n")}\x1b[${y + 1};${x + 1}H`;
    const theme = light ? themes.light : themes.dark;
    const page = await browser.newPage();
    await page.setContent(
      `<style>${style} body{margin:0} #frame{display:inline-block;padding:10px;background:${theme.background}}</style>` +
        `<div id=frame><div id=terminal></div></div><script>${code}</script>`,
    );
    await page.evaluate(
      ([cols, rows, text, theme]) =>
        new Promise((done) => {
          const terminal = new Terminal({ cols, rows, theme, fontFamily: "DejaVu Sans Mono, monospace", fontSize: 14, lineHeight: 1.15 });
          terminal.open(document.getElementById("terminal"));
          terminal.write(text, () => requestAnimationFrame(() => requestAnimationFrame(done)));
        }),
      [columns, rows, text, theme],
    );
    fs.mkdirSync(path.dirname(file), { recursive: true });
    await page.locator("#frame").screenshot({ path: file });
    await page.close();
  }
} finally {
  await browser.close();
}
