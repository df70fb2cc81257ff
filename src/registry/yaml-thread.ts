// The thread of yaml-document.ts: parses one text.

import { parentPort, workerData } from 'node:worker_threads';
import { readYaml } from './yaml-document.ts';

parentPort?.postMessage(await readYaml(workerData));
