// The two pages that show the API, Swagger UI and ReDoc, and the headers that restrict them: a page loads from this gateway only, runs
// only its own scripts, and may not be framed; and the files that they load. Addresses are relative, so that the pages work behind a path prefix. Source: Content
// Security Policy level 3; ADR 21.

import { createHash } from 'node:crypto';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';

/** Also the first segment of the path. */
export type PageName = 'docs' | 'redoc';

export interface Asset {
  readonly module: string;
  readonly type: string;
  /** Replacements; each passage occurs exactly once. */
  readonly edits?: readonly Edit[];
}

export interface Edit {
  readonly passage: string;
  readonly by: string;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

type Assets = Readonly<Record<string, Asset>>;

/** Files of GET /docs/assets/…, by name. The page of koa2-swagger-ui requests the style under the name that a CDN uses. */
const SWAGGER_ASSETS: Assets = {
  'swagger-ui.min.css': { module: 'swagger-ui-dist/swagger-ui.css', type: STYLE },
  'swagger-ui-bundle.js': { module: 'swagger-ui-dist/swagger-ui-bundle.js', type: SCRIPT },
  'swagger-ui-standalone-preset.js': {
    module: 'swagger-ui-dist/swagger-ui-standalone-preset.js',
    type: SCRIPT,
  },
  'favicon-32x32.png': { module: 'swagger-ui-dist/favicon-32x32.png', type: 'image/png' },
};

const REDOCLY = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="14"><text y="11" font-family="sans-serif" font-size="12">Redocly</text></svg>',
)}`;

const REDOC_ASSETS: Assets = {
  'redoc.standalone.js': {
    module: 'redoc/bundles/redoc.standalone.js',
    type: SCRIPT,
    edits: [
      // The logo of the vendor is loaded from a CDN.
      { passage: '`https://cdn.redoc.ly/redoc/logo-mini-full.svg`', by: `\`${REDOCLY}\`` },
      { passage: '`https://cdn.redoc.ly/redoc/logo-mini.svg`', by: `\`${REDOCLY}\`` },
      // The search compiles code for a worker, which the policy forbids; it also works without.
      { passage: 'return e._factory??=Function(XDe),!0', by: 'return!1' },
      // It resolves relative server addresses as if the page were a folder.
      { passage: 'return e.endsWith(`.html`)&&HP(e)||e', by: 'return HP(e)||e' },
      { passage: 'n=WP(e)+`/`+t;', by: 'n=new URL(t,WP(e)+`/`).href;' },
    ],
  },
};

export const ASSETS: Readonly<Record<PageName, Assets>> = { docs: SWAGGER_ASSETS, redoc: REDOC_ASSETS };

export interface Page {
  readonly html: string;
  /** As `[name, value, …]`. */
  readonly headers: readonly string[];
}

/** The page of Swagger UI, rendered by koa2-swagger-ui, which is loaded for it once (45 ms). */
export async function swaggerPage(): Promise<Page> {
  const { koaSwagger } = await import('koa2-swagger-ui');
  const render = koaSwagger({
    title: 'Stagedoor: API',
    routePrefix: '/docs',
    swaggerCdnUrl: 'docs',
    swaggerVersion: 'assets',
    favicon: 'docs/assets/favicon-32x32.png',
    hideTopbar: true,
    swaggerOptions: {
      url: 'openapi.json',
      // The default sends the address of the description to a validation service.
      validatorUrl: null,
      deepLinking: true,
      persistAuthorization: false,
      displayRequestDuration: true,
      tryItOutEnabled: true,
    },
  });
  // Rendered once, in a context without a connection: the policy and the ETag are hashes of the whole page.
  const request = new IncomingMessage(new Socket());
  request.url = '/docs';
  const context = new Koa().createContext(request, new ServerResponse(request));
  await render(context, async () => {});
  const html = selfHosted(String(context.body));
  return { html, headers: pageHeaders(inlinePartsOf(html)) };
}

/** Removes the link to fonts on another host, and the style attribute, which the policy does not allow. */
function selfHosted(html: string): string {
  const page = html
    .replace(/\s*<link href="https:\/\/fonts\.googleapis\.com[^>]*>/, '')
    .replace(/ style="position:absolute;width:0;height:0"/, ' width="0" height="0"');
  const names = Object.keys(SWAGGER_ASSETS).filter((name) => !page.includes(`"docs/assets/${name}"`));
  if (names.length > 0 || /(?:src|href)="(?:https?:)?\/\/|\sstyle="/.test(page))
    throw new Error(`the page of koa2-swagger-ui is not the expected one: ${names.join(', ')}`);
  return page;
}

/**
 * The page of ReDoc, whose bundle is an ES module that reads the attributes of the element `redoc`. Telemetry is off.
 * ReDoc creates an empty style element and fills it by rules, so the policy allows an empty style element only.
 */
export function redocPage(): Page {
  const { scripts, styles } = inlinePartsOf(REDOC_HTML);
  return { html: REDOC_HTML, headers: pageHeaders({ scripts, styles: [...styles, ''] }) };
}

const REDOC_HTML = `<!DOCTYPE html>
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

interface InlineParts {
  readonly scripts: readonly string[];
  readonly styles: readonly string[];
}

/** Headers as `[name, value, …]`. Inline parts are allowed by hash, never by `unsafe-inline`. */
export function pageHeaders({ scripts, styles }: InlineParts): readonly string[] {
  const policy = {
    'default-src': ["'none'"],
    'script-src': ["'self'", ...scripts.map(hashOf)],
    'style-src': ["'self'", ...styles.map(hashOf)],
    'img-src': ["'self'", 'data:'],
    'font-src': ['data:'],
    'connect-src': ["'self'"],
    'base-uri': ["'none'"],
    'form-action': ["'none'"],
    'frame-ancestors': ["'none'"],
  };
  const directives = Object.entries(policy).map(([name, sources]) => `${name} ${sources.join(' ')}`);
  return [
    ...['Content-Security-Policy', directives.join('; ')],
    ...['Referrer-Policy', 'no-referrer', 'Cross-Origin-Opener-Policy', 'same-origin'],
  ];
}

/** The inline scripts and styles of a page, as a browser would hash them. */
export function inlinePartsOf(html: string): InlineParts {
  const contents = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map(([, content = '']) => content);
  return {
    scripts: contents(/<script>([\s\S]*?)<\/script>/g),
    styles: contents(/<style>([\s\S]*?)<\/style>/g),
  };
}

function hashOf(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
