// Names of templates that nobody has heard of, in what an account is limited to: most often not typed right.

import { nearMiss } from '../../config/nearest.ts';
import { CommandFailure } from '../failures.ts';
import type { Terminal } from '../terminal.ts';
import type { AccountClient } from './account-client.ts';

/** Warns of names that are no template now. It may come later, so it is no failure; nor is it when nobody can be asked. */
export async function warnOfUnknownTemplates(
  desk: Pick<AccountClient, 'templates'>,
  wanted: readonly string[] | undefined,
  terminal: Pick<Terminal, 'note'>,
): Promise<void> {
  if (wanted === undefined || wanted.length === 0) return;
  const known = await knownTo(desk);
  if (known === undefined) return;
  for (const name of wanted.filter((each) => !known.includes(each))) {
    const meant = nearMiss(name, known);
    const guess = meant === undefined ? '' : `; did you mean "${meant}"?`;
    terminal.note(`warning: there is no template "${name}" now, though it may come later${guess}`);
  }
}

/** Undefined when it is not told: what was asked for is done, and this is only advice about it. */
async function knownTo(desk: Pick<AccountClient, 'templates'>): Promise<readonly string[] | undefined> {
  try {
    return await desk.templates();
  } catch (error) {
    if (error instanceof CommandFailure) return undefined;
    throw error;
  }
}
