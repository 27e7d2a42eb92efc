use axum::{routing::get, Router};
use tokio::signal::unix::{signal, SignalKind};

#[tokio::main]
async fn main() {
    let app = Router::new().route("/", get(|| async { format!("hello from axum, pid {}", std::process::id()) }));
    let port = std::env::var("PORT").expect("PORT is set");
    let listener = tokio::net::TcpListener::bind(format!("0.0.0.0:{port}")).await.expect("the port is free");
    let mut told = signal(SignalKind::terminate()).expect("SIGTERM can be heard");
    axum::serve(listener, app).with_graceful_shutdown(async move { told.recv().await; }).await.expect("it serves");
}
