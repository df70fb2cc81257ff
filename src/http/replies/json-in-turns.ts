// Answers that grow with the registry, or with the lists of servers: their JSON is made in several turns of the event loop.

import { jsonPieces } from '../../domain/json/json-pieces.ts';
import type { TaskScheduler } from '../../domain/time/task-scheduler.ts';
import { type BytesReply, bytes } from './reply.ts';

/** UTF-16 units of JSON that are made in one task of the scheduler. */
const PIECE_UNITS = 32_768;

/** The reply of `json` with status 200, written in several turns of the event loop. */
export async function jsonInTurns(value: object, scheduler: TaskScheduler): Promise<BytesReply> {
  return bytes(200, await joinedInTurns(jsonPieces(value), scheduler));
}

/** All pieces as UTF-8; each is made in the task that joins it. */
export async function joinedInTurns(pieces: Iterable<string>, scheduler: TaskScheduler): Promise<Buffer> {
  const joined: Buffer[] = [];
  let text = '';
  for (const piece of pieces) {
    text += piece;
    if (text.length < PIECE_UNITS) continue;
    joined.push(Buffer.from(text));
    text = '';
    await scheduler.turn();
  }
  joined.push(Buffer.from(text));
  return Buffer.concat(joined);
}
