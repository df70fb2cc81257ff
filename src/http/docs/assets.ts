// The files that the two pages load, all of them from packages that were installed with this one. The list is explicit:
// a name from a URL is looked up in it and never becomes part of a path.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** Where a file comes from and what it is. */
export interface Asset {
  /** As Node resolves it. */
  readonly module: string;
  /** Media type. */
  readonly type: string;
  /** Passages that are replaced, each exactly one of the file. */
  readonly edits?: readonly Edit[];
}

interface Edit {
  readonly passage: string;
  readonly by: string;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Files of GET /docs/assets/…, by name. The page of koa2-swagger-ui asks for the style under its CDN's name. */
export const SWAGGER_ASSETS: Readonly<Record<string, Asset>> = {
  'swagger-ui.min.css': { module: 'swagger-ui-dist/swagger-ui.css', type: STYLE },
  'swagger-ui-bundle.js': { module: 'swagger-ui-dist/swagger-ui-bundle.js', type: SCRIPT },
  'swagger-ui-standalone-preset.js': {
    module: 'swagger-ui-dist/swagger-ui-standalone-preset.js',
    type: SCRIPT,
  },
  'favicon-32x32.png': { module: 'swagger-ui-dist/favicon-32x32.png', type: 'image/png' },
};

/** The name as a picture of its own. */
const REDOCLY = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" width="44" height="14"><text y="11" font-family="sans-serif" font-size="12">Redocly</text></svg>',
)}`;

/** Files of GET /redoc/assets/…, by name. */
export const REDOC_ASSETS: Readonly<Record<string, Asset>> = {
  'redoc.standalone.js': {
    module: 'redoc/bundles/redoc.standalone.js',
    type: SCRIPT,
    edits: [
      // The name of its maker is a picture from a CDN.
      { passage: '`https://cdn.redoc.ly/redoc/logo-mini-full.svg`', by: `\`${REDOCLY}\`` },
      { passage: '`https://cdn.redoc.ly/redoc/logo-mini.svg`', by: `\`${REDOCLY}\`` },
      // Its search tries to make code of a text, for a worker. The policy forbids that, and it works without.
      { passage: 'return e._factory??=Function(XDe),!0', by: 'return!1' },
      // It shows relative addresses of servers as if the page were a folder.
      { passage: 'return e.endsWith(`.html`)&&HP(e)||e', by: 'return HP(e)||e' },
      { passage: 'n=WP(e)+`/`+t;', by: 'n=new URL(t,WP(e)+`/`).href;' },
    ],
  },
};

const { resolve } = createRequire(import.meta.url);
/** Where the build puts packages that cannot be dependencies: redoc wants a version of another one that does not exist. */
const VENDOR = new URL('../../vendor/', import.meta.url);

/** Reads a file of the lists above. Rejects when its package is not installed, or is not the one that is known here. */
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
    throw new Error(`${module} is not the file that is known here: ${passage.slice(0, 60)}`);
  }
  return before + by + after;
}
