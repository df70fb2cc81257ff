// The files of the console, which Vite builds from web/ into web/dist. They are read at the first request, compressed once and
// kept in memory. The path of a request is looked up among them and never becomes a path of the disk. Source: ADR 72.

import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { consoleNotBuilt, routeNotFound } from '../../domain/error-catalogue.ts';
import { HTTP_LIMITS } from '../limits.ts';
import type { BytesReply } from '../reply.ts';
import type { ContentEncoding, HttpRequest } from '../request.ts';
import { type CachedDocument, cachedDocument, documentReply, makeOnce, REVALIDATED } from './documents.ts';

/** The same path in a clone and in an installed package. */
const BUILT = new URL('../../../web/dist/', import.meta.url);

/** Most segments of a page's path: each number of segments needs another document. */
const MOST_SEGMENTS = 8;

/** By extension; other files are not served. */
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

export const CONSOLE_TYPES: readonly string[] = Object.values(TYPES).map((type) => type.replace(/;.*/, ''));

const INDEX = 'index.html';

/** Vite puts a hash of the content into the names of these files. */
const ASSETS = 'assets/';

type Variants = Readonly<Partial<Record<ContentEncoding, CachedDocument>>> & {
  readonly identity: CachedDocument;
};

type Files = ReadonlyMap<string, Buffer>;

export class ConsoleFiles {
  readonly #folder: string;
  readonly #filesOnce = makeOnce<Files>();
  readonly #variantsOnce = makeOnce<Variants>();

  constructor(folder: URL = BUILT) {
    this.#folder = fileURLToPath(folder);
  }

  /** A file, or the page for every other path under `/console`. NOT_FOUND when it is not built, and for an unknown asset. */
  async reply({
    path,
    headers,
    encoding,
  }: Pick<HttpRequest, 'path' | 'headers' | 'encoding'>): Promise<BytesReply> {
    const files = await this.#filesOnce('', () => this.#read());
    const name = path.slice('/console/'.length);
    const file = name === INDEX ? undefined : files.get(name);
    const segments = path.split('/').length - 2;
    // A page of an earlier build requests files of that build: it must not get a page instead of a script.
    if (file === undefined && (name.startsWith(ASSETS) || segments > MOST_SEGMENTS))
      throw routeNotFound('GET', path.slice(0, HTTP_LIMITS.loggedPathCharacters));
    if (file === undefined) this.#prepareAssets(files);
    const variants =
      file === undefined
        ? await this.#variantsOnce(`${INDEX} ${segments}`, () => pageVariants(files.get(INDEX), segments))
        : await this.#variantsOnce(name, () => fileVariants(name, file));
    return documentReply(variants[encoding] ?? variants.identity, headers['if-none-match']);
  }

  #read(): Promise<Files> {
    if (!existsSync(join(this.#folder, INDEX))) throw consoleNotBuilt();
    return filesIn(this.#folder);
  }

  /** Compresses the files that the requested page loads next. */
  #prepareAssets(files: Files): void {
    for (const [name, content] of files)
      if (name.startsWith(ASSETS)) void this.#variantsOnce(name, () => fileVariants(name, content));
  }
}

/** The files below a folder, by their names with `/`. Links are not followed. */
async function filesIn(folder: string): Promise<Files> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES)
    .map((entry) => join(entry.parentPath, entry.name));
  const named = paths.map(
    async (path) => [relative(folder, path).split(sep).join('/'), await readFile(path)] as const,
  );
  return new Map(await Promise.all(named));
}

/** Allows files of this gateway only: nothing inline, nothing from other hosts, no frames. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const FOR_EVER = ['Cache-Control', 'public, max-age=31536000, immutable'];

/** For every file: an SVG that is opened by its address is a page, too. */
const RESTRICTED = [
  ...['Content-Security-Policy', POLICY, 'Referrer-Policy', 'no-referrer'],
  ...['Cross-Origin-Opener-Policy', 'same-origin', 'Cross-Origin-Resource-Policy', 'same-origin'],
];

function fileVariants(name: string, content: Buffer): Promise<Variants> {
  const caching = name.startsWith(ASSETS) ? FOR_EVER : REVALIDATED;
  return variantsOf(content, TYPES[extname(name)] ?? '', [...caching, ...RESTRICTED]);
}

/**
 * The page for a path with this many segments below `/console`. Its links are relative, so that it works behind a path
 * prefix of a proxy; the path of the request decides what they are relative to.
 */
function pageVariants(index: Buffer | undefined, segments: number): Promise<Variants> {
  if (index === undefined) throw consoleNotBuilt();
  const prefix = segments === 0 ? 'console/' : '../'.repeat(segments - 1);
  const html = String(index).replace(
    /((?:src|href)=")(\.\.?\/)/g,
    (_, attribute: string, start: string) => `${attribute}${prefix}${start === './' ? '' : start}`,
  );
  return variantsOf(Buffer.from(html), TYPES['.html'] ?? '', [...REVALIDATED, ...RESTRICTED]);
}

/** Smaller or incompressible files are not compressed. */
const SMALL_BYTES = 1_024;
const INCOMPRESSIBLE = /^(?:font\/woff2|image\/png)$/;

async function variantsOf(content: Buffer, type: string, headers: readonly string[]): Promise<Variants> {
  if (content.length < SMALL_BYTES || INCOMPRESSIBLE.test(type))
    return { identity: cachedDocument(content, type, headers) };
  const [br, gzipped] = await Promise.all([toBrotli(content), toGzip(content)]);
  const varying = [...headers, 'Vary', 'Accept-Encoding'];
  return {
    identity: cachedDocument(content, type, varying),
    br: cachedDocument(br, type, [...varying, 'Content-Encoding', 'br']),
    gzip: cachedDocument(gzipped, type, [...varying, 'Content-Encoding', 'gzip']),
  };
}

/** Quality 5 instead of 11 takes 26 ms for 270 kB instead of 490, with 11 % more bytes. The first request waits for it. */
const toBrotli = (content: Buffer): Promise<Buffer> =>
  promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });
const toGzip = (content: Buffer): Promise<Buffer> => promisify(gzip)(content, { level: 9 });
