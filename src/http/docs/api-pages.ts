// The documents of one app: the API description, the two pages that show it, and their files, all from installed
// packages. Each is made at its first request and kept in memory. A name from a URL is looked up and never becomes
// part of a path. A page loads from this gateway only, runs only its own scripts, and may not be framed; addresses
// are relative, so that the pages work behind a path prefix. Source: Content Security Policy level 3; ADR 21.

import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import Koa from 'koa';
import { PACKAGE_ROOT } from '../../domain/package-root.ts';
import { type BytesReply, bytes } from '../replies/reply.ts';

/** Answers the routes of routes/documents.ts. */
export function documentsOf(describe: () => Promise<object>) {
  const once = makeOnce<BytesReply>();
  return {
    description: () =>
      once('openapi.json', async () => {
        const text = JSON.stringify(await describe());
        return documentReply(Buffer.from(text), 'application/json', NOT_CACHED);
      }),
    page: (name: PageName) =>
      once(name, async () => {
        const { html, headers } = name === 'docs' ? await swaggerPage() : redocPage();
        return documentReply(Buffer.from(html), 'text/html; charset=utf-8', [...NOT_CACHED, ...headers]);
      }),
    asset: (page: PageName, name: string) =>
      once(`${page}/${name}`, async () => {
        const asset = PAGE_ASSETS[page][name];
        if (asset === undefined) throw new Error(`"${name}" is not in the list of files`);
        return documentReply(await readAsset(asset), asset.type, CACHED_FOR_AN_HOUR);
      }),
  };
}

const CACHED_FOR_AN_HOUR = ['Cache-Control', 'public, max-age=3600'];

/** Header of a document without a version in its name, because an upgrade may change it. */
export const NOT_CACHED: readonly string[] = ['Cache-Control', 'no-cache'];

export function documentReply(content: Buffer, type: string, headers: readonly string[]): BytesReply {
  return { ...bytes(200, content, { headers }), type };
}

/** Makes the value of a key at its first request. A failure is not kept: a missing file may be built or installed later. */
export function makeOnce<T>(): (key: string, make: () => Promise<T>) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key, make) => {
    const value = values.get(key) ?? make();
    values.set(key, value);
    value.catch(() => values.delete(key));
    return value;
  };
}

const { resolve } = createRequire(import.meta.url);
/** The build copies redoc here. It cannot be a dependency: one of redoc's dependencies names a version that does not exist. */
const VENDOR = new URL('dist/vendor/', PACKAGE_ROOT);

/** Reads a listed file. Throws when its package is not installed. */
async function readAsset({ module, edits = [] }: Asset): Promise<Buffer> {
  const copy = new URL(module, VENDOR);
  const content = await readFile(existsSync(copy) ? copy : resolve(module));
  if (edits.length === 0) return content;
  return Buffer.from(edits.reduce((text, [passage, by]) => text.replace(passage, () => by), String(content)));
}

/** The name of a page, and the first segment of its path. */
export type PageName = 'docs' | 'redoc';

interface Asset {
  readonly module: string;
  readonly type: string;
  /** Replacements: a passage that occurs once, and the text for it. */
  readonly edits?: readonly (readonly [passage: string, by: string])[];
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

type Assets = Readonly<Record<string, Asset>>;

/** Files of GET /docs/assets/…, by name. The page of koa2-swagger-ui requests the style under the name that a CDN uses. */
const SWAGGER_ASSETS: Assets = {
  'swagger-ui.min.css': { module: 'swagger-ui-dist/swagger-ui.css', type: STYLE },
  'swagger-ui-bundle.js': {
    module: 'swagger-ui-dist/swagger-ui-bundle.js',
    type: SCRIPT,
    edits: [
      // The authorization is kept for the tab, until it is closed, and not for all later visits of this machine.
      ['localStorage.setItem("authorized"', 'sessionStorage.setItem("authorized"'],
      ['localStorage.getItem("authorized")', 'sessionStorage.getItem("authorized")'],
    ],
  },
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
      ['`https://cdn.redoc.ly/redoc/logo-mini-full.svg`', `\`${REDOCLY}\``],
      ['`https://cdn.redoc.ly/redoc/logo-mini.svg`', `\`${REDOCLY}\``],
      // The search compiles code for a worker, which the policy forbids; it also works without.
      ['return e._factory??=Function(XDe),!0', 'return!1'],
      // The bundle resolves relative server addresses as if the page were a folder.
      ['return e.endsWith(`.html`)&&HP(e)||e', 'return HP(e)||e'],
      ['n=WP(e)+`/`+t;', 'n=new URL(t,WP(e)+`/`).href;'],
    ],
  },
};

export const PAGE_ASSETS: Readonly<Record<PageName, Assets>> = { docs: SWAGGER_ASSETS, redoc: REDOC_ASSETS };

interface DocumentPage {
  readonly html: string;
  /** Names and values in turn: `[name, value, …]`. */
  readonly headers: readonly string[];
}

/** The page of Swagger UI, rendered by koa2-swagger-ui, which only this page loads (45 ms). */
async function swaggerPage(): Promise<DocumentPage> {
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
      persistAuthorization: true,
      displayRequestDuration: true,
      tryItOutEnabled: true,
    },
  });
  // Rendered once, in a context without a connection: the policy has hashes of parts of the page.
  const { IncomingMessage, ServerResponse } = process.getBuiltinModule('node:http'); // see server/sockets/listeners.ts
  const request = new IncomingMessage(new Socket());
  request.url = '/docs';
  const context = new Koa().createContext(request, new ServerResponse(request));
  await render(context, async () => {});
  // Removes the link to fonts on another host, and the style attribute, which the policy does not allow.
  const html = String(context.body)
    .replace(/\s*<link href="https:\/\/fonts\.googleapis\.com[^>]*>/, '')
    .replace(/ style="position:absolute;width:0;height:0"/, ' width="0" height="0"');
  return documentPage(html);
}

/**
 * The page of ReDoc, whose bundle is an ES module that reads the attributes of the element `redoc`. Telemetry is off.
 * ReDoc creates an empty style element and fills it by rules, so the policy allows an empty style element only.
 */
function redocPage(): DocumentPage {
  return documentPage(REDOC_HTML, ['']);
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

/** The page with the headers that allow its inline scripts and styles, and further styles. */
function documentPage(html: string, furtherStyles: readonly string[] = []): DocumentPage {
  const contents = (pattern: RegExp) => [...html.matchAll(pattern)].map(([, content = '']) => content);
  const scripts = contents(/<script>([\s\S]*?)<\/script>/g);
  const styles = [...contents(/<style>([\s\S]*?)<\/style>/g), ...furtherStyles];
  return { html, headers: restricted(scripts, styles) };
}

/**
 * Headers of a page as `[name, value, …]`: it gets files of this gateway only, nothing from other hosts, and no
 * frames. Inline parts are allowed by hash, never by `unsafe-inline`.
 */
export function restricted(scripts: readonly string[] = [], styles: readonly string[] = []): string[] {
  const policy = [
    "default-src 'none'",
    ["script-src 'self'", ...scripts.map(hashOf)].join(' '),
    ["style-src 'self'", ...styles.map(hashOf)].join(' '),
    "img-src 'self' data:",
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ];
  return [
    ...['Content-Security-Policy', policy.join('; '), 'Referrer-Policy', 'no-referrer'],
    ...['Cross-Origin-Opener-Policy', 'same-origin', 'Cross-Origin-Resource-Policy', 'same-origin'],
  ];
}

function hashOf(content: string): string {
  return `'sha256-${hash('sha256', content, 'base64')}'`;
}
