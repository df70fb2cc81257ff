// One process with a part of the sessions of herds.ts, which started it and asks it over its channel.

import { Herd, type HerdOptions } from './herd.ts';

/** What herds.ts asks. The first question is `begin with`. */
export type HerdQuestion = { readonly id: number } & (
  | { readonly what: 'begin with'; readonly options: HerdOptions }
  | { readonly what: 'open'; readonly count: number }
  | { readonly what: 'opened by' | 'begin'; readonly port: number }
  | { readonly what: 'heard'; readonly last: number }
  | { readonly what: 'ask some' | 'served' | 'others served' | 'record' }
);

export interface HerdReply {
  readonly id: number;
  readonly result?: unknown;
  readonly failure?: string;
}

let herd: Herd | undefined;
process.on('message', (question: HerdQuestion) => void reply(question));
process.on('disconnect', () => process.exit());

async function reply(question: HerdQuestion): Promise<void> {
  const { id } = question;
  const send = (answer: HerdReply): unknown => process.connected && process.send?.(answer);
  try {
    send({ id, result: await answerTo(question) });
  } catch (thrown) {
    send({ id, failure: String(thrown) });
  }
}

function answerTo(question: HerdQuestion): unknown {
  if (question.what === 'begin with') {
    herd = new Herd(question.options);
    return undefined;
  }
  if (herd === undefined) throw new Error('there is no herd yet');
  switch (question.what) {
    case 'open':
      return herd.open(question.count);
    case 'opened by':
      return herd.openedBy(question.port);
    case 'begin':
      return herd.begin(question.port);
    case 'heard':
      return herd.heard(question.last);
    case 'ask some':
      return herd.askSome();
    case 'served':
      return herd.served();
    case 'others served':
      return herd.othersServed();
    case 'record':
      return herd.record;
  }
}
