const INTERVAL_MS = 1000

/**
 * Sends resident memory and CPU share once a second.
 * @param {import('./channel.js').Channel} channel
 */
export function sendVitals (channel) {
  let lastCpu = process.cpuUsage()
  let lastAt = performance.now()

  setInterval(() => {
    const cpu = process.cpuUsage(lastCpu)
    const now = performance.now()
    const cpuPercent = (cpu.user + cpu.system) / 10 / (now - lastAt)
    lastCpu = process.cpuUsage()
    lastAt = now
    channel.send({ type: 'vitals', rssBytes: process.memoryUsage.rss(), cpuPercent: Math.round(cpuPercent * 10) / 10 })
  }, INTERVAL_MS).unref()
}
