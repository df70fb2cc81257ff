// The questions of `stagedoor template init`, except those that options answer.

import type { Readable, Writable } from 'node:stream';
import { select, text, updateSettings } from '@clack/prompts';
import { isTemplateId } from '../domain/template-name.ts';
import { Cancelled } from './failures.ts';

export interface TemplateAnswers {
  readonly id: string | undefined;
  readonly name?: string;
  readonly description: string | undefined;
  /** The command of the definition; a complete one has either `command` or `endpoint`. */
  readonly command: string | undefined;
  readonly endpoint: string | undefined;
  readonly tags?: readonly string[];
}

/** Asks for each value that is undefined. Throws Cancelled when the user cancels. */
export async function askTemplate(
  given: TemplateAnswers,
  streams: { readonly input: Readable; readonly output: Writable },
): Promise<TemplateAnswers> {
  // Ctrl-D: the line editor would end, and the question never.
  updateSettings({ aliases: { '\u0004': 'cancel' } });
  const ask = async (message: string, problemOf: (answer: string) => string | undefined): Promise<string> =>
    uncancelled(
      await text({ ...streams, message, validate: (answer = '') => problemOf(answer.trim()) }),
    ).trim();
  const id = given.id ?? (await ask('Id, used in URLs and commands', idProblem));
  const name = await ask('Display name', emptyProblem);
  const description = given.description ?? (await ask('What does the server do?', emptyProblem));
  const written = await ask('Tags, separated by commas', () => undefined);
  const tags = written.split(/\s*,\s*/).filter(Boolean);
  const answers = { ...given, id, name, description, tags };
  if (given.command !== undefined || given.endpoint !== undefined) return answers;
  const options = [
    { value: 'command', label: 'A program that the gateway starts (stdio)' },
    { value: 'endpoint', label: 'A server that runs already (HTTP)' },
  ] as const;
  const reached = uncancelled(
    await select({ ...streams, message: 'How is it reached?', options: [...options] }),
  );
  if (reached === 'command')
    return { ...answers, command: await ask('Command with its words', emptyProblem) };
  return { ...answers, endpoint: await ask('URL', urlProblem) };
}

function uncancelled<T>(answer: T): Exclude<T, symbol> {
  if (typeof answer === 'symbol') throw new Cancelled();
  return answer as Exclude<T, symbol>;
}

const emptyProblem = (answer: string) => (answer === '' ? 'this is needed' : undefined);
const idProblem = (answer: string) =>
  isTemplateId(answer) ? undefined : 'lower-case letters, digits and hyphens, starting with a letter';
const urlProblem = (answer: string) =>
  /^https?:/.test(answer) && URL.canParse(answer) ? undefined : 'a URL such as http://127.0.0.1:9000/mcp';
