module.exports = {
  register ({ strapi }) {
    strapi.server.routes([{ method: 'GET', path: '/hello', handler: (ctx) => { ctx.body = `hello from strapi, pid ${process.pid}` }, config: { auth: false } }])
  }
}
