// Programs in containers, run by the engine's exec with its streams attached. The API of engines cannot
// signal such a program, so a variable that it and all its child processes inherit identifies it.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import type Docker from 'dockerode';
import {
  exitedWith,
  type ProgramEnd,
  type ProgramOutput,
  type RunInContainer,
} from '../domain/instances/found-instances.ts';
import { sleep, systemClock, timeLimit } from '../domain/time/clock.ts';
import { connectEngine, isAboutRemoved } from './containers.ts';

const VARIABLE = 'STAGEDOOR_PROGRAM';

/** The script that signals every process of the container whose environment contains the variable. It needs only a shell. */
const SIGNAL_SCRIPT = `
for file in /proc/[0-9]*/environ; do
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      *"$2"*) pid=\${file#/proc/}; kill -s "$1" "\${pid%/environ}" ;;
    esac
  done <"$file"
done 2>/dev/null
exit 0
`;

/** The most checks for the id of a process that was just started. */
const MAX_START_CHECKS = 10;
const START_CHECK_MS = 20;
/** The most checks for the end of a process, which an engine reports shortly after the end of its stream. */
const MAX_END_CHECKS = 10;
const END_CHECK_MS = 50;
/** The longest wait for an engine while the program runs, in ms. */
const ENGINE_MS = 5_000;
/** The waits between attempts to kill a program that was given up while its engine did not answer, in ms. */
const KILL_AGAIN_MS: readonly number[] = [1_000, 2_000, 4_000, 8_000, 16_000];

export const runInContainer: RunInContainer = async ({ engine: address, id }, words, output, abortSignal) => {
  const container = (await connectEngine(address)).getContainer(id);
  const variable = `${VARIABLE}=${randomBytes(12).toString('hex')}`;
  const exec = await container.exec({
    Cmd: [...words],
    Env: [variable],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    abortSignal,
  });
  let isKillAnswered = false;
  // Aborted while it starts, the program may run nevertheless.
  abortSignal.addEventListener('abort', () => isKillAnswered || void killLater(container, variable));
  const stream = await exec.start({ hijack: true, stdin: true, Tty: false, abortSignal });
  stream.on('data', demultiplexer(output));
  stream.on('error', () => {}); // its close follows
  const closed = Promise.withResolvers<void>();
  addAbortSignal(abortSignal, stream).once('end', closed.resolve).once('close', closed.resolve);
  const within = () => AbortSignal.any([abortSignal, timeLimit(systemClock, ENGINE_MS)]);
  const exited = closed.promise.then(() => {
    stream.destroy();
    return endOf(exec, within);
  });
  const pid = await pidOf(exec, variable, within);
  return {
    pid,
    exited,
    write: (text, done) => stream.write(text, done),
    endInput: () => stream.end(),
    signal: async (name) => {
      const outcome = await signalled(container, variable, name, within());
      isKillAnswered ||= name === 'KILL' && outcome !== 'unanswered';
      if (outcome === 'done' || pid === undefined || !hasVariable(pid, variable)) return;
      try {
        process.kill(pid, `SIG${name}`); // the container has no shell
      } catch {
        // It has ended meanwhile, or belongs to another user: nothing more can be done.
      }
    },
  };
};

/** Finds the process if this machine runs it. A new process has no environment for a moment. `within` bounds one request. */
async function pidOf(exec: Docker.Exec, variable: string, within: () => AbortSignal) {
  try {
    for (let checks = 0; checks < MAX_START_CHECKS; checks += 1) {
      if (checks > 0) await sleep(systemClock, START_CHECK_MS);
      const { Pid: pid, Running: isRunning } = await exec.inspect({ abortSignal: within() });
      if (!isRunning || (pid > 0 && environmentOf(pid) === undefined)) return undefined;
      if (pid > 0 && hasVariable(pid, variable)) return pid;
    }
  } catch {
    // The engine is stopping, which `exited` reports, or does not answer.
  }
  return undefined;
}

function hasVariable(pid: number, variable: string): boolean {
  return environmentOf(pid)?.includes(variable) === true;
}

/** Kills the program as soon as its engine answers. */
async function killLater(container: Docker.Container, variable: string): Promise<void> {
  for (const waitMs of [0, ...KILL_AGAIN_MS]) {
    await sleep(systemClock.background, waitMs);
    const outcome = await signalled(container, variable, 'KILL', timeLimit(systemClock, ENGINE_MS));
    if (outcome !== 'unanswered') return;
  }
}

async function signalled(
  container: Docker.Container,
  variable: string,
  name: string,
  abortSignal: AbortSignal,
): Promise<'done' | 'failed' | 'unanswered'> {
  try {
    const killer = await container.exec({
      Cmd: ['sh', '-c', SIGNAL_SCRIPT, 'sh', name, variable],
      AttachStdout: true,
      AttachStderr: true,
      abortSignal,
    });
    const stream = await killer.start({ abortSignal });
    for await (const _ of stream) {
      // Wait for its end; there is nothing to read.
    }
    return (await killer.inspect({ abortSignal })).ExitCode === 0 ? 'done' : 'failed';
  } catch (thrown) {
    // The container is gone, and the program with it; or the engine is.
    return isAboutRemoved(thrown) ? 'failed' : 'unanswered';
  }
}

async function endOf(exec: Docker.Exec, within: () => AbortSignal): Promise<ProgramEnd> {
  try {
    for (let checks = 0; checks < MAX_END_CHECKS; checks += 1) {
      const { Running: isRunning, ExitCode: code } = await exec.inspect({ abortSignal: within() });
      if (!isRunning) return code === null ? { reason: 'it ended' } : exitedWith(code);
      await sleep(systemClock.background, END_CHECK_MS);
    }
    return { reason: 'closed its standard output' };
  } catch (thrown) {
    const isRemoved = isAboutRemoved(thrown);
    return { reason: isRemoved ? 'its container was removed' : 'the connection to its engine was lost' };
  }
}

/** The environment of a process; undefined for a process of another user, and on another machine or system. */
function environmentOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return undefined;
  }
}

/** Splits the stream of the engine into frames. Their header has 8 bytes: the number of the stream first, the length last. */
function demultiplexer({ onOutput, onError }: ProgramOutput): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left === 0) {
        const taken = chunk.subarray(at, at + 8 - header.length);
        header = Buffer.concat([header, taken]);
        at += taken.length;
        if (header.length < 8) return;
        left = header.readUInt32BE(4);
        if (left === 0) header = Buffer.alloc(0);
        continue;
      }
      const content = chunk.subarray(at, at + left);
      at += content.length;
      left -= content.length;
      if (header[0] === 2) onError(content);
      else onOutput(content);
      if (left === 0) header = Buffer.alloc(0);
    }
  };
}
