// Reads a folder of template definitions: one folder per template, named like it, with a template.json. Anything
// else in place of that file (a folder, a pipe, a loop of links, a file that is far too large) is a TemplateError
// with one issue; reading never blocks and never reads a large file. definition.ts has the form of a definition.

import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf, fileFault } from '../domain/errors/errors.ts';
import { PACKAGE_ROOT } from '../domain/package-root.ts';
import { readTemplate, type TemplateDefinition, TemplateError } from './definition.ts';

export interface Catalogue {
  readonly templates: readonly TemplateDefinition[];
  /** The faults, one line each, with the path inside the folder: `weather/template.json: version: is missing`. */
  readonly problems: readonly string[];
}

/** The most files that are open at a time: a process may have some thousand, with the connections of its clients. */
const MAX_AT_ONCE = 16;
/** The templates of this package, the servers of `gateway start --demo`. */
const BUNDLED_TEMPLATES = fileURLToPath(new URL('templates', PACKAGE_ROOT));

/**
 * Reads all templates of a folder. An unusable file or folder is a problem, not a failure; a subfolder
 * without template.json is not a template.
 */
export async function readCatalogue(folder: string = BUNDLED_TEMPLATES): Promise<Catalogue> {
  let names: string[];
  try {
    const members = await readdir(folder, { withFileTypes: true });
    names = members.filter((member) => !member.isFile()).map(({ name }) => name);
  } catch (thrown) {
    return {
      templates: [],
      problems: [`the folder of templates cannot be read (${fileFault(thrown)})`],
    };
  }
  const inOrder = names.toSorted();
  const read: Awaited<ReturnType<typeof readMember>>[] = [];
  for (let from = 0; from < inOrder.length; from += MAX_AT_ONCE) {
    const some = inOrder.slice(from, from + MAX_AT_ONCE).map((name) => readMember(folder, name));
    read.push(...(await Promise.all(some)));
  }
  return {
    templates: read.flatMap(({ template }) => template ?? []),
    problems: read.flatMap(({ problems }) => problems),
  };
}

async function readMember(
  folder: string,
  name: string,
): Promise<{ template?: TemplateDefinition; problems: readonly string[] }> {
  const label = `${name}/template.json`;
  try {
    const template = readTemplate(await readTemplateText(join(folder, name, 'template.json')), name);
    // Names of folders make ids unique.
    if (template.id === name) return { template, problems: [] };
    return { problems: [`${label}: id: is "${template.id}", but the folder is "${name}"`] };
  } catch (thrown) {
    if (!(thrown instanceof TemplateError)) throw thrown;
    const isNoTemplate = /^(ENOENT|ENOTDIR)$/.test(codeOf(thrown.cause) ?? '');
    return { problems: isNoTemplate ? [] : thrown.issues.map((issue) => `${label}: ${issue}`) };
  }
}

const MAX_TEMPLATE_BYTES = 1024 * 1024;
const PIECE_BYTES = 16 * 1024;

/** The text of a template.json. Throws TemplateError; its issue completes "<path>: ". */
export async function readTemplateText(path: string): Promise<string> {
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      // The open file, because the path may name another one by now.
      const stats = await file.stat();
      if (!stats.isFile()) throw new TemplateError(['is not a file']);
      if (stats.size > MAX_TEMPLATE_BYTES) throw tooLong(stats.size);
      return await readAtMost(file, MAX_TEMPLATE_BYTES);
    } finally {
      await file.close();
    }
  } catch (thrown) {
    if (thrown instanceof TemplateError) throw thrown;
    throw new TemplateError([`cannot be read (${fileFault(thrown)})`], thrown);
  }
}

/**
 * The text of a file of at most this size. A size that the file system gives says little: a file may grow meanwhile,
 * and some file systems say 0.
 */
async function readAtMost(file: FileHandle, mostBytes: number): Promise<string> {
  const pieces: Buffer[] = [];
  for (let bytes = 0; ; ) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(PIECE_BYTES));
    if (bytesRead === 0) return Buffer.concat(pieces).toString('utf8');
    bytes += bytesRead;
    if (bytes > mostBytes) throw tooLong(bytes);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}

function tooLong(bytes: number): TemplateError {
  const size = (bytes / MAX_TEMPLATE_BYTES).toFixed(1);
  return new TemplateError([`has ${size} MB; a definition may have 1 MB`]);
}
