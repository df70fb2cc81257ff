// The files of the console, which Vite builds from web/ into web/dist. They are read and compressed at the first
// request and kept in memory. The path of a request is looked up among them and never becomes a path of the disk.
// Source: ADR 72.

import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { consoleNotBuilt, routeNotFound } from '../../domain/errors/request-errors.ts';
import { PACKAGE_ROOT } from '../../domain/package-root.ts';
import { HTTP_LIMITS } from '../http-limits.ts';
import { type BytesReply, noContent } from '../replies/reply.ts';
import type { HttpRequest } from '../request.ts';
import { documentReply, makeOnce, NOT_CACHED, restricted } from './api-pages.ts';

const BUILT = new URL('web/dist/', PACKAGE_ROOT);

/** The media types by extension; other files are not served. */
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export const CONSOLE_TYPES: readonly string[] = Object.values(TYPES).map((type) => type.replace(/;.*/, ''));

const INDEX = 'index.html';

/** Vite puts a hash of the content into the names of these files. */
const ASSETS = 'assets/';

interface Variants {
  readonly plain: BytesReply;
  readonly gzipped: BytesReply;
}

/**
 * A file of the built console, or the page for every other name below `/console/`, which its relative links need; what
 * is below such a name is redirected to it. Throws NOT_FOUND when it is not built, and for an unknown asset: a page of an
 * earlier build requests files of that build, and must not get a page instead of a script.
 */
export function consoleReply(built: URL = BUILT) {
  const folder = fileURLToPath(built);
  const once = makeOnce<ReadonlyMap<string, Variants>>();
  return async ({ path, acceptsGzip }: Pick<HttpRequest, 'path' | 'acceptsGzip'>): Promise<BytesReply> => {
    const files = await once('', async () => {
      if (!existsSync(join(folder, INDEX))) throw consoleNotBuilt();
      return filesIn(folder);
    });
    if (path === '/console') return { ...noContent({ headers: ['Location', 'console/'] }), status: 308 };
    const asked = path.slice('/console/'.length);
    const [name = '', ...below] = asked.split('/');
    if (below.length > 0 && `${name}/` !== ASSETS)
      return { ...noContent({ headers: ['Location', `${'../'.repeat(below.length)}${name}`] }), status: 308 };
    const file = files.get(below.length > 0 || files.has(asked) ? asked : INDEX);
    if (file === undefined) throw routeNotFound('GET', path.slice(0, HTTP_LIMITS.loggedPathCharacters));
    return acceptsGzip ? file.gzipped : file.plain;
  };
}

/** The files below a folder, by their names with `/`. Links are not followed. */
async function filesIn(folder: string): Promise<ReadonlyMap<string, Variants>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES)
    .map((entry) => join(entry.parentPath, entry.name));
  const files = paths.map(async (path) => {
    const name = relative(folder, path).split(sep).join('/');
    return [name, await variantsOf(name, await readFile(path))] as const;
  });
  return new Map(await Promise.all(files));
}

const FOR_EVER = ['Cache-Control', 'public, max-age=31536000, immutable'];

async function variantsOf(name: string, content: Buffer): Promise<Variants> {
  const type = TYPES[extname(name)] ?? '';
  const caching = name.startsWith(ASSETS) ? FOR_EVER : NOT_CACHED;
  // An SVG that is opened by its address is a page, too.
  const headers = [...caching, ...restricted(), 'Vary', 'Accept-Encoding'];
  const compressed = await promisify(gzip)(content, { level: 9 });
  return {
    plain: documentReply(content, type, headers),
    gzipped: documentReply(compressed, type, [...headers, 'Content-Encoding', 'gzip']),
  };
}
