import path from 'node:path'
import { formatBytes, formatExactDuration } from '../../public/format.js'
import { packFolder } from './archive.js'

/** How often somebody who waits hears of it. */
const TELL_EVERY_MS = 5000
const MAX_NAMED = 10

/**
 * Sends a folder to the fleet, unless it is there already.
 * @param {string} folder @param {Pick<import('./commands.js').Context, 'api' | 'cwd' | 'tell' | 'options'>} context
 * @returns {Promise<string>} its digest, by which it can be deployed
 */
export async function push (folder, { api, cwd, tell, options }) {
  // Who may not is told before anything is packed.
  const { items } = await api.get('/fleet/releases')
  tell(`packing ${folder}`)
  const archive = await packFolder(path.resolve(cwd, folder), { also: namesOf(options.pushAlso) })
  const { digest, bytes, entries, unpackedBytes, leftOut } = archive
  try {
    if (leftOut.length > 0) tell(`not sent: ${leftOutText(leftOut)}`)
    tell(`packed ${entries} files and folders, ${formatBytes(unpackedBytes)}, to ${formatBytes(bytes)} as ${digest}`)
    if (items.some((/** @type {any} */ item) => item.digest === digest)) tell('it was pushed before: nothing is sent')
    else await send(archive, { api, tell })
    return digest
  } finally {
    await archive.close()
  }
}

/** @param {string | undefined} list of `--push-also` */
function namesOf (list) {
  return list?.split(',').map((name) => name.trim()).filter(Boolean) ?? []
}

/** @param {import('./archive.js').LeftOut[]} leftOut */
function leftOutText (leftOut) {
  const named = leftOut.slice(0, MAX_NAMED).map(({ name, why }) => `${name} (${why})`)
  const rest = leftOut.length - named.length
  const all = [...named, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
  const askable = leftOut.filter(({ canBeAskedFor }) => canBeAskedFor).slice(0, MAX_NAMED).map(({ name }) => name)
  return askable.length === 0 ? all : `${all}; --push-also ${askable.join(',')} sends what is in .gitignore or has variables`
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
