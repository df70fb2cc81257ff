// Puts a definition into a folder of templates: all of it or nothing, and over another one only when that is wanted.

import { randomUUID } from 'node:crypto';
import { link, mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandFailure } from './failures.ts';

export interface NewDefinition {
  readonly id: string;
  /** Of its template.json. */
  readonly text: string;
  /** Whether one with the same id is replaced. */
  readonly isForced: boolean;
}

/** Makes `<folder>/<id>/template.json` and resolves with its path. Throws CommandFailure with nothing changed. */
export async function placeDefinition(
  folder: string,
  { id, text, isForced }: NewDefinition,
): Promise<string> {
  const home = join(folder, id);
  const path = join(home, 'template.json');
  // Files beside the folders of templates are none of the gateway's.
  const draft = join(folder, `.${id}-${randomUUID()}.json`);
  let made: string | undefined;
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(draft, text, { flag: 'wx' });
    made = await mkdir(home, { recursive: true });
    if (isForced) await rename(draft, path);
    else await link(draft, path); // fails when it is there
    return path;
  } catch (thrown) {
    if (made !== undefined) await rmdir(home).catch(() => undefined); // not empty: another program was here
    const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown);
    if (code === 'EEXIST' && !isForced)
      throw new CommandFailure(`${path} exists already; --force replaces it`, { cause: thrown });
    throw new CommandFailure(`${path} cannot be written (${code})`, { cause: thrown });
  } finally {
    await rm(draft, { force: true }).catch(() => undefined); // a draft has no effect
  }
}
