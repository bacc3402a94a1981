#include "rendezvous/transport/listener.hpp"

#include <boost/asio/ip/v6_only.hpp>

namespace ddrun::rendezvous {

using boost::asio::ip::tcp;

tcp::acceptor open_listener(const boost::asio::any_io_executor& executor,
                            const tcp::endpoint& endpoint, int backlog) {
    tcp::acceptor acceptor(executor);
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6()) {
        const bool every_address = endpoint.address().is_unspecified();
        acceptor.set_option(boost::asio::ip::v6_only(!every_address));
    }
    acceptor.bind(endpoint);
    acceptor.listen(backlog);
    return acceptor;
}

}  // namespace ddrun::rendezvous
