// The files that the two pages load, all from installed packages. A name from a URL is looked up in these lists and never becomes
// part of a path.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

export interface Asset {
  /** Module specifier. */
  readonly module: string;
  readonly type: string;
  /** Replacements; each passage occurs exactly once. */
  readonly edits?: readonly Edit[];
}

interface Edit {
  readonly passage: string;
  readonly by: string;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Files of GET /docs/assets/…, by name. The page of koa2-swagger-ui requests the style under the name that a CDN uses. */
export const SWAGGER_ASSETS: Readonly<Record<string, Asset>> = {
  'swagger-ui.min.css': { module: 'swagger-ui-dist/swagger-ui.css', type: STYLE },
  'swagger-ui-bundle.js': { module: 'swagger-ui-dist/swagger-ui-bundle.js', type: SCRIPT },
  'swagger-ui-standalone-preset.js': {
    module: 'swagger-ui-dist/swagger-ui-standalone-preset.js',
    type: SCRIPT,
  },
  'favicon-32x32.png': { module: 'swagger-ui-dist/favicon-32x32.png', type: 'image/png' },
};

/** The name of the vendor as an image. */
const REDOCLY = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="14"><text y="11" font-family="sans-serif" font-size="12">Redocly</text></svg>',
)}`;

/** Files of GET /redoc/assets/…, by name. */
export const REDOC_ASSETS: Readonly<Record<string, Asset>> = {
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

const { resolve } = createRequire(import.meta.url);
/** The build copies redoc here. It cannot be a dependency: one of its own dependencies has a version that does not exist. */
const VENDOR = new URL('../../vendor/', import.meta.url);

/** Reads a listed file. Rejects when its package is not installed, or has another version than the edits expect. */
export async function readAsset({ module, edits = [] }: Asset): Promise<Buffer> {
  const content = await readFile(placeOf(module));
  if (edits.length === 0) return content;
  return Buffer.from(edits.reduce((text, edit) => edited(text, edit, module), content.toString('utf8')));
}

function placeOf(module: string): string | URL {
  const copy = new URL(module, VENDOR);
  return existsSync(copy) ? copy : resolve(module);
}

function edited(text: string, { passage, by }: Edit, module: string): string {
  const [before = '', after, ...more] = text.split(passage);
  if (after === undefined || more.length > 0) {
    throw new Error(`${module} is not the expected file: ${passage.slice(0, 60)}`);
  }
  return before + by + after;
}
