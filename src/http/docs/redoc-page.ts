// The page of ReDoc. Its bundle is an ES module that looks for the element `redoc` and reads its attributes.

import type { Page } from './page.ts';
import { inlinePartsOf, pageHeaders } from './policy.ts';

/**
 * Telemetry is off. ReDoc makes its styles while it runs: it puts an empty element on the page and fills that by rules,
 * so the policy allows a style without content, and none with.
 */
export function redocPage(): Page {
  const { scripts, styles } = inlinePartsOf(HTML);
  return { html: HTML, headers: pageHeaders({ scripts, styles: [...styles, ''] }) };
}

const HTML = `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Stagedoor: API</title>
  <link rel="icon" href="data:,">
  <style>body { margin: 0; }</style>
</head>
<body>
  <redoc id="redoc" spec-url="openapi.json" disable-telemetry="true"></redoc>
  <script type="module" src="redoc/assets/redoc.standalone.js"></script>
</body>
</html>
`;
