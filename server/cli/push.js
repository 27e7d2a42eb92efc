import path from 'node:path'
import { formatBytes, formatExactDuration } from '../../public/format.js'
import { packFolder } from './archive.js'

/** How often somebody who waits hears of it. */
const TELL_EVERY_MS = 5000

/**
 * Sends a folder to the fleet, unless it is there already.
 * @param {string} folder @param {Pick<import('./commands.js').Context, 'api' | 'cwd' | 'tell'>} context
 * @returns {Promise<string>} its digest, by which it can be deployed
 */
export async function push (folder, { api, cwd, tell }) {
  // Who may not is told before anything is packed.
  const { items } = await api.get('/fleet/releases')
  tell(`packing ${folder}`)
  const archive = await packFolder(path.resolve(cwd, folder))
  const { digest, bytes, entries, unpackedBytes } = archive
  try {
    tell(`packed ${entries} files and folders, ${formatBytes(unpackedBytes)}, to ${formatBytes(bytes)} as ${digest}`)
    if (items.some((/** @type {any} */ item) => item.digest === digest)) tell('it was pushed before: nothing is sent')
    else await send(archive, { api, tell })
    return digest
  } finally {
    await archive.close()
  }
}

/** @param {import('./archive.js').Archive} archive @param {Pick<import('./commands.js').Context, 'api' | 'tell'>} context */
async function send ({ digest, bytes, read }, { api, tell }) {
  const startedAt = performance.now()
  const body = read()
  const telling = setInterval(() => tell(`sent ${formatBytes(/** @type {any} */ (body).bytesRead)} of ${formatBytes(bytes)}`), TELL_EVERY_MS)
  try {
    await api.upload(`/fleet/releases?digest=${digest}`, body, { type: 'application/gzip', bytes })
  } finally {
    clearInterval(telling)
  }
  tell(`sent ${formatBytes(bytes)} in ${formatExactDuration(Math.round(performance.now() - startedAt))}`)
}
