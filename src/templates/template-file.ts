// Reads a template.json from a disk. Whatever stands in its place (a folder, a pipe, a loop of links, a file that is far too
// large) is a TemplateError with one issue; nothing blocks, and nothing large is read.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { TemplateError } from './definition.ts';

/** Real ones have a few KB. */
const MOST_TEMPLATE_BYTES = 1024 * 1024;

/** The code of the system, such as ENOENT, when the file could not be opened. */
export class TemplateFileError extends TemplateError {
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
    // Opening a pipe would wait for its other end.
    const file = await open(path, NO_WAITING);
    try {
      const stats = await file.stat();
      if (stats.isDirectory()) throw new TemplateFileError(`${REASONS.EISDIR}`, 'EISDIR');
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
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
    throw new TemplateFileError(REASONS[code] ?? `cannot be read (${code})`, code, thrown);
  }
}

const NO_WAITING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  ELOOP: 'is a loop of links',
  EACCES: 'may not be read by this user',
  EISDIR: 'is a folder; name the template.json in it',
};
