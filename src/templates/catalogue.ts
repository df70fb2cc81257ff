// Reads a folder of template definitions: one folder per template, named like it, with a template.json. Anything
// else in place of that file (a folder, a pipe, a loop of links, a file that is far too large) is a TemplateError
// with one issue; reading never blocks and never reads a large file. definition.ts has the form of a definition.

import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../domain/errors.ts';
import { readTemplate, type TemplateDefinition, TemplateError } from './definition.ts';

export interface Catalogue {
  readonly templates: readonly TemplateDefinition[];
  /** One line per fault, with the path inside the folder: `weather/template.json: version: is missing`. */
  readonly problems: readonly string[];
}

/** The templates of this package, the servers of `gateway start --demo`. */
const BUNDLED_TEMPLATES = fileURLToPath(new URL('../../templates', import.meta.url));

/**
 * Reads all templates of a folder. An unusable file or folder is a problem, not a failure; a subfolder
 * without template.json is no template.
 */
export async function readCatalogue(folder: string = BUNDLED_TEMPLATES): Promise<Catalogue> {
  let names: string[];
  try {
    const members = await readdir(folder, { withFileTypes: true });
    names = members.filter((member) => !member.isFile()).map(({ name }) => name);
  } catch (thrown) {
    return {
      templates: [],
      problems: [`the folder of templates cannot be read (${codeOf(thrown) ?? thrown})`],
    };
  }
  const read = await Promise.all(names.toSorted().map((name) => readMember(folder, name)));
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
    const isNoTemplate = thrown instanceof TemplateFileError && /^(ENOENT|ENOTDIR)$/.test(thrown.code ?? '');
    return { problems: isNoTemplate ? [] : thrown.issues.map((issue) => `${label}: ${issue}`) };
  }
}

const MOST_TEMPLATE_BYTES = 1024 * 1024;

/** `code`: of the system, such as ENOENT, when the file could not be opened. */
class TemplateFileError extends TemplateError {
  readonly code: string | undefined;

  constructor(issue: string, code: string | undefined, cause?: unknown) {
    super([issue], cause);
    this.name = 'TemplateFileError';
    this.code = code;
  }
}

/** The text of the file. Throws TemplateFileError; its issue completes "<path>: ". */
export async function readTemplateText(path: string): Promise<string> {
  try {
    // Without this flag, opening a pipe would wait for its other end.
    const file = await open(path, NO_WAITING);
    try {
      const stats = await file.stat();
      if (!stats.isFile()) throw new TemplateFileError('is not a file', undefined);
      if (stats.size > MOST_TEMPLATE_BYTES) {
        const size = (stats.size / MOST_TEMPLATE_BYTES).toFixed(1);
        throw new TemplateFileError(`has ${size} MB; a definition may have 1 MB`, 'EFBIG');
      }
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  } catch (thrown) {
    if (thrown instanceof TemplateError) throw thrown;
    const code = codeOf(thrown) ?? String(thrown);
    throw new TemplateFileError(`cannot be read (${code})`, code, thrown);
  }
}

const NO_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
