// A terminal that remembers what a command said, for specs of commands.

import type { Terminal } from '../../src/cli/terminal.ts';

export interface RecordingTerminal extends Terminal {
  /** Everything printed, in order. */
  readonly printed: string[];
  /** Everything complained about, in order. */
  readonly complaints: string[];
}

/** `colours` marks painted text as `<green>…</green>` instead of leaving it as it is; `columns` makes it one of a person. */
export function recordingTerminal(
  options: { env?: Record<string, string>; folder?: string; colours?: boolean; columns?: number } = {},
): RecordingTerminal {
  const printed: string[] = [];
  const complaints: string[] = [];
  return {
    printed,
    complaints,
    print: (text) => void printed.push(text),
    complain: (text) => void complaints.push(text),
    paint: (colour, text) => (options.colours ? `<${colour}>${text}</${colour}>` : text),
    columns: options.columns,
    env: options.env ?? {},
    folder: options.folder ?? process.cwd(),
  };
}
