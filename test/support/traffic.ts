import type { Page } from 'playwright-core'

/**
 * What a page sends for and gets, in bytes on the wire: answers with their headers, and what comes over its WebSockets.
 * `page`: before it goes anywhere.
 */
export async function followTraffic (page: Page) {
  const session = await page.context().newCDPSession(page)
  /**
   * `messages`: of the live page, `replies`: to what the page has said; the heartbeats of its connection are not among
   * them
   */
  const traffic = { bytes: 0, requests: 0, urls: [] as string[], messages: [] as string[], replies: 0 }
  session.on('Network.requestWillBeSent', ({ request: { url } }) => {
    // Chromium's own picture of a calendar is sent for nowhere.
    if (url.startsWith('data:')) return
    traffic.requests++
    traffic.urls.push(url)
  })
  session.on('Network.webSocketCreated', ({ url }) => {
    traffic.requests++
    traffic.urls.push(url)
  })
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    traffic.bytes += encodedDataLength
  })
  session.on('Network.webSocketFrameReceived', ({ response: { payloadData } }) => {
    traffic.bytes += Buffer.byteLength(payloadData)
    if (payloadData.startsWith('42')) traffic.messages.push(payloadData)
    if (payloadData.startsWith('43')) traffic.replies++
  })
  await session.send('Network.enable')
  return traffic
}
