import { clearTimeout, setTimeout } from 'node:timers'

const FIRST_LOOK_MS = 250
const LOOK_EVERY_MS = 1000

/**
 * Tells what keeps this process running for as long as it does not listen: an app that is no server, a bot say, has
 * timers, connections or children all the same.
 * @param {import('./channel.js').Channel} channel
 */
export function tellActivity (channel) {
  let told = ''
  let timer = setTimeout(look, FIRST_LOOK_MS).unref()

  return { stop () { clearTimeout(timer) } }

  function look () {
    // Those that Node would wait for; each kind once.
    const resources = [...new Set(process.getActiveResourcesInfo())].sort()
    if (String(resources) !== told) channel.send({ type: 'active', resources })
    told = String(resources)
    timer = setTimeout(look, LOOK_EVERY_MS).unref()
  }
}
