// Strict, with types; the generated protocol.ts is checked by its generator.
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist/", "src/protocol.ts"] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      eqeqeq: "error",
      "no-console": "error",
    },
  },
  {
    // What say.ts does for all texts.
    ignores: ["src/say.ts"],
    rules: {
      "no-restricted-syntax": [
        "error",
        {
          selector: "MemberExpression[property.name=/^(show(Information|Warning|Error)Message|showInputBox|withProgress)$/]",
          message: "VS Code makes links of such texts, and an agent may have written them: use say.ts.",
        },
        {
          selector: "Literal[value=/^#[0-9a-f]{3,8}$|^(rgb|hsl)a?\\(/i]",
          message: "A colour of its own fits one theme: use a ThemeColor.",
        },
      ],
    },
  },
);
