import path from 'node:path'
import { formatBytes, formatExactDuration } from '../../public/format.js'
import { packFolder } from './archive.js'
import { namesIn } from './names.js'

const TELL_EVERY_MS = 5000
const MAX_NAMED = 10

/**
 * Sends a folder to the fleet, unless it is there already.
 * @param {string} folder @param {Pick<import('./commands.js').Context, 'api' | 'cwd' | 'tell' | 'options'>} context
 * @returns {Promise<string>} the digest, with which the folder can be deployed
 */
export async function pushFolder (folder, { api, cwd, tell, options }) {
  // Asked first, so that a missing permission is told before anything is packed.
  const { items } = await api.get('/fleet/releases')
  tell(`packing ${folder}`)
  const archive = await packFolder(path.resolve(cwd, folder), { also: namesIn(options.pushAlso) })
  const { digest, bytes, entries, unpackedBytes, leftOut } = archive
  try {
    if (leftOut.length > 0) tell(`not sent: ${leftOutText(leftOut)}`)
    tell(`packed ${entries} files and folders, ${formatBytes(unpackedBytes)}, to ${formatBytes(bytes)} as ${digest}`)
    if (items.some((/** @type {{ digest: string }} */ item) => item.digest === digest)) tell('already pushed: nothing is sent')
    else await sendArchive(archive, { api, tell })
    return digest
  } finally {
    await archive.close()
  }
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
async function sendArchive ({ digest, bytes, read }, { api, tell }) {
  const startedAt = performance.now()
  let sentBytes = 0
  const body = read((count) => { sentBytes += count })
  const telling = setInterval(() => tell(`sent ${formatBytes(sentBytes)} of ${formatBytes(bytes)}`), TELL_EVERY_MS)
  try {
    await api.upload(`/fleet/releases?digest=${digest}`, body, { type: 'application/gzip', bytes })
  } finally {
    clearInterval(telling)
  }
  tell(`sent ${formatBytes(bytes)} in ${formatExactDuration(Math.round(performance.now() - startedAt))}`)
}
