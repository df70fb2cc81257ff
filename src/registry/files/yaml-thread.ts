// The thread of yaml-document.ts: parses one text.

import { parentPort, workerData } from 'node:worker_threads';
import { yamlAnswer } from './yaml-document.ts';

parentPort?.postMessage(yamlAnswer(workerData));
