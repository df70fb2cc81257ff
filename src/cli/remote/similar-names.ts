// Suggests a similar name when a template, an instance, a tool or a view is unknown.

import { didYouMean } from '../../domain/nearest.ts';
import { CommandFailure, GatewayRefusal } from '../failures.ts';
import { type Fields, fields, objectsOf } from './answers.ts';
import type { Remote } from './remote.ts';

/**
 * Runs a request about a template or a view. The failure for an unknown name of it, of an instance or of a tool
 * suggests a similar one.
 */
export async function ofTemplate<T>(
  gateway: Remote,
  template: string,
  work: () => Promise<T>,
  { id = '', tool = '' }: { readonly id?: string | undefined; readonly tool?: string } = {},
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayRefusal) || error.hasSuggestion) throw error;
    const guess = await guessOf(error.code, gateway, { template, id, tool });
    if (guess === undefined) throw error;
    throw new CommandFailure(`${error.message}; ${guess}`, { cause: error });
  }
}

/** The suggestion of a similar name; undefined for a caller that may not read the names. */
async function guessOf(
  code: unknown,
  gateway: Remote,
  { template, id, tool }: Readonly<Record<'template' | 'id' | 'tool', string>>,
): Promise<string | undefined> {
  const answerOf = (path: string) => gateway.request(path).then(fields, () => ({}) as Fields);
  if (code === 'TOOL_NOT_FOUND') {
    const { tools } = await answerOf(`/mcp/${encodeURIComponent(template)}/tools/list`);
    return didYouMean(
      tool,
      objectsOf(tools).map(({ name }) => String(name)),
    );
  }
  const viewGuess = async () => {
    const { views } = await answerOf('/gateway/views');
    return didYouMean(
      template,
      objectsOf(views).map((view) => String(view.id)),
    );
  };
  if (code === 'VIEW_NOT_FOUND') return viewGuess();
  if (code !== 'TEMPLATE_NOT_FOUND' && code !== 'SERVER_NOT_FOUND') return undefined;
  const templates = fields((await answerOf('/gateway/registry')).templates);
  if (code === 'TEMPLATE_NOT_FOUND')
    return didYouMean(template, Object.keys(templates)) ?? (await viewGuess());
  const { instances } = fields(templates[template]);
  return didYouMean(
    id,
    objectsOf(instances).map((each) => String(each.id)),
  );
}
