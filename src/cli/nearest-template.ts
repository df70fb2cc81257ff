// What a command says of a template that the gateway does not know: the one that was meant, where that is plain.

import { nearMiss } from '../config/nearest.ts';
import { fields } from './answers.ts';
import { CommandFailure, Refused } from './failures.ts';
import type { Remote } from './remote.ts';

/** Does what is asked of a template. Where there is none of that name, the failure names one that is like it. */
export async function ofTemplate<T>(gateway: Remote, template: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== 'TEMPLATE_NOT_FOUND') throw error;
    const meant = nearMiss(template, await templatesOf(gateway));
    if (meant === undefined) throw error;
    throw new CommandFailure(`${error.message}; did you mean "${meant}"?`, { cause: error });
  }
}

/** None where the caller may not ask: it is only advice. */
async function templatesOf(gateway: Remote): Promise<readonly string[]> {
  try {
    return Object.keys(fields(fields(await gateway.request('/gateway/registry')).templates));
  } catch (error) {
    if (error instanceof CommandFailure) return [];
    throw error;
  }
}
