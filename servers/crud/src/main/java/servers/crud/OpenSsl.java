// SPDX-License-Identifier: Apache-2.0
package servers.crud;

import org.apache.coyote.http11.AbstractHttp11JsseProtocol;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.stereotype.Component;

/** Tomcat's TLS by OpenSSL through the foreign function interface (Java 22 and newer) in place of Java's own. */
@Component
@ConditionalOnProperty(name = "tls", havingValue = "openssl")
class OpenSsl implements WebServerFactoryCustomizer<TomcatServletWebServerFactory> {

    private static final String IMPLEMENTATION = "org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation";

    @Override
    public void customize(TomcatServletWebServerFactory factory) {
        factory.addConnectorCustomizers(connector ->
                ((AbstractHttp11JsseProtocol<?>) connector.getProtocolHandler()).setSslImplementationName(IMPLEMENTATION));
    }
}
