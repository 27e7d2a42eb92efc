import { existsSync, readFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * Lets one worker of fixtures/hangs.js hang; nobody waits for its answer, which never comes. `folder`: its FOLDER,
 * where the worker says that it begins: until then another request could reach it too. Returns its pid.
 */
export async function hang (url: string, folder: string, how: string): Promise<number> {
  http.get(`${url}/${how}`, { agent: false }, (response) => response.resume()).on('error', () => {})
  const file = path.join(folder, how)
  while (!existsSync(file) || readFileSync(file, 'utf8') === '') await wait(10)
  return Number(readFileSync(file, 'utf8'))
}
