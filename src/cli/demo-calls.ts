// The calls that the demo shows, as command lines that work when they are pasted into a shell of this platform.

import { join } from 'node:path';

/** One call: what it shows, and the line to paste. `file` must hold `body` before the line works (Windows only). */
export interface DemoCall {
  readonly what: string;
  readonly line: string;
  readonly file?: { readonly path: string; readonly body: string };
}

/** The template that shows most. */
const SHOWCASE = 'everything';

export interface DemoCallOptions {
  /** Of the gateway. */
  readonly url: string;
  /** Where files of bodies may be put. */
  readonly folder: string;
  /** Sent with every call; absent when the gateway asks nobody who they are. */
  readonly apiKey: string | undefined;
  /** Templates that can answer. */
  readonly healthy: ReadonlySet<string>;
  readonly platform?: NodeJS.Platform;
}

/**
 * Calls that healthy templates can answer: three to `everything`, or else one to each of the others. No way of quoting
 * JSON works in both cmd and PowerShell, so on Windows the body comes from a file below `folder`.
 */
export function demoCalls(options: DemoCallOptions): readonly DemoCall[] {
  const { url, folder, apiKey, healthy, platform = process.platform } = options;
  const isWindows = platform === 'win32';
  // In PowerShell `curl` is something else.
  const curl = isWindows ? 'curl.exe' : 'curl';
  const quote = isWindows ? '"' : "'";

  const own = apiKey === undefined ? [] : [`X-API-Key: ${apiKey}`];
  const written = (headers: readonly string[]) => headers.map((header) => ` -H ${quote}${header}${quote}`);

  const get = (what: string, path: string): DemoCall => ({
    what,
    line: [`${curl} -s ${url}${path}`, ...written(own)].join(''),
  });
  const post = (what: string, tool: string, values: object, accept?: string): DemoCall => {
    const body = JSON.stringify({ name: tool, arguments: values });
    const path = join(folder, `${tool}.json`);
    const headers = [
      ...own,
      'Content-Type: application/json',
      ...(accept === undefined ? [] : [`Accept: ${accept}`]),
    ];
    const line = [
      `${curl} -s${accept === undefined ? '' : 'N'} ${url}/mcp/${SHOWCASE}/tools/call`,
      ...written(headers),
      ` -d ${quote}${isWindows ? `@${path}` : body}${quote}`,
    ].join('');
    return isWindows ? { what, line, file: { path, body } } : { what, line };
  };

  const list = (template: string) => get('Which tools are there?', `/mcp/${template}/tools/list`);
  if (!healthy.has(SHOWCASE)) return [...healthy].map(list);
  return [
    list(SHOWCASE),
    post('Call one of them; three instances take turns.', 'echo', { message: 'hello' }),
    post(
      'Follow a long call while it works.',
      'trigger-long-running-operation',
      { duration: 3, steps: 3 },
      'text/event-stream',
    ),
  ];
}
