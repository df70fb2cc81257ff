// `stagedoor gateway call`: calls one tool and shows what it answers.

import { parseExact } from '../../domain/json.ts';
import { type Fields, fields } from '../answers.ts';
import { CLIENT_OPTIONS, gatewayOf } from '../client-options.ts';
import type { CommandDefinition } from '../command.ts';
import { CommandFailure } from '../failures.ts';
import { ofTemplate } from '../nearest-template.ts';
import type { Remote } from '../remote.ts';
import type { RemoteEvent } from '../remote-events.ts';
import { argumentsText, findTool, readArguments } from '../tool-arguments.ts';

/** Row of the command table. */
export const call: CommandDefinition = {
  name: 'gateway call',
  positionals: '<template> <tool> [...arguments]',
  summary:
    'Call a tool; its arguments are one JSON object, - for JSON on standard input, or key=value words; exit code 1 when the tool reports an error',
  options: CLIENT_OPTIONS,
  examples: [
    'gateway call everything echo message=hello',
    'gateway call everything get-sum \'{"a": 2, "b": 3}\'',
    'gateway call everything echo - --json < arguments.json',
  ],
  run: async (input, terminal) => {
    const { json, printable } = await import('../output.ts');
    const [template, tool, ...words] = [
      input.positional(0),
      input.positional(1),
      ...input.positionals.slice(2),
    ];
    const written = await readArguments(words, () => terminal.readAll());
    const gateway = await gatewayOf(input, terminal);
    const path = `/mcp/${encodeURIComponent(template)}/tools`;
    const result = await ofTemplate(gateway, template, async () => {
      const list = () => gateway.request(`${path}/list`);
      const args =
        written.kind === 'json'
          ? written.text
          : argumentsText(written.pairs, findTool(await list(), template, tool));
      const text = `{"name":${JSON.stringify(tool)},"arguments":${args}}`;
      return terminal.busy(`calling ${tool} of ${template}`, (progress) =>
        resultOf(gateway, `${path}/call`, text, (event) => progress(`${tool}: ${printable(newsOf(event))}`)),
      );
    });
    const value = fields(parseExact(result));
    const hasFailed = value.isError === true;
    if (input.switch('json')) terminal.print(json(value));
    else if (hasFailed) {
      throw new CommandFailure(`${tool} of ${template} reports an error`, { details: linesOf(value) });
    } else terminal.print(linesOf(value).join('\n'));
    return hasFailed ? 1 : 0;
  },
};

/** JSON text of the result. What the server says meanwhile is news. */
async function resultOf(
  gateway: Remote,
  path: string,
  text: string,
  onNews: (event: RemoteEvent) => void,
): Promise<string> {
  let result: string | undefined;
  await gateway.follow(path, { method: 'POST', text }, (event) => {
    if (event.name === 'result') result = event.data;
    else onNews(event);
  });
  if (result === undefined) throw new CommandFailure(`${gateway.url} ended the call without a result`);
  return result;
}

/** `2 of 3 step 2` of progress; the words of a log message; else the name of what happened. */
function newsOf({ name, data }: RemoteEvent): string {
  const { method, params } = fields(JSON.parse(data));
  const { progress, total, message, data: words } = fields(params);
  if (name === 'log') return typeof words === 'string' ? words : JSON.stringify(words);
  if (name !== 'progress') return String(method);
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return message === undefined ? share : `${share} ${message}`;
}

/** The content as text; what is not text is named. */
function linesOf({ content, structuredContent }: Fields): string[] {
  const parts = Array.isArray(content) ? content.map((part) => partText(fields(part))) : [];
  if (parts.length > 0 || structuredContent === undefined) return parts;
  return [JSON.stringify(structuredContent, null, 2)];
}

function partText(part: Fields): string {
  const { type, text, data, mimeType } = part;
  switch (type) {
    case 'text':
      return String(text);
    case 'image':
    case 'audio':
      return `[${type} ${mimeType}, ${bytesText(data)}]`;
    case 'resource': {
      const { uri, text: words, blob, mimeType: kind = 'data' } = fields(part.resource);
      return typeof words === 'string' ? words : `[${kind}, ${bytesText(blob)}: ${uri}]`;
    }
    case 'resource_link':
      return `[link ${part.name}: ${part.uri}]`;
    default:
      return JSON.stringify(part);
  }
}

/** Size of what base64 stands for. */
function bytesText(base64: unknown): string {
  const bytes = typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0;
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
