// Formats Lua by stylua, whose command line program no registry has: `node stylua.mjs STYLUA.TOML [--write] FOLDER…`.
//
// The style is that of the file: `name = value` lines.

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const stylua = createRequire(import.meta.url)(process.env.PACTIFY_STYLUA);
const [style, ...rest] = process.argv.slice(2);
const write = rest[0] === "--write";
const folders = write ? rest.slice(1) : rest;
const choices = {
  quote_style: stylua.QuoteStyle,
  indent_type: stylua.IndentType,
  collapse_simple_statement: stylua.CollapseSimpleStatement,
};
const settings = [...fs.readFileSync(style, "utf8").matchAll(/^(\w+) = "?(\w+)"?$/gm)];

// Formatting consumes it.
function config() {
  const config = stylua.Config.new();
  config.syntax = stylua.LuaVersion.LuaJIT;
  for (const [, name, value] of settings) {
    config[name] = choices[name]?.[value] ?? Number(value);
  }
  return config;
}

let unlike = 0;
for (const folder of folders) {
  for (const name of fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".lua"))) {
    const file = path.join(folder, name);
    const text = fs.readFileSync(file, "utf8");
    const formatted = stylua.formatCode(text, config(), undefined, stylua.OutputVerification.None);
    if (formatted === text) {
      continue;
    }
    unlike += 1;
    if (write) {
      fs.writeFileSync(file, formatted);
    }
    console.log(`${write ? "formatted" : "not formatted"}: ${file}`);
  }
}
process.exitCode = write || unlike === 0 ? 0 : 1;
